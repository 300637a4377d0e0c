"""How a table changes: Change → conflict check → rebase → stage → swap."""
