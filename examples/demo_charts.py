"""Small pictures as SVG text: a plot with two axes, and what can be put into it.

Colours are CSS classes, so that the page decides between light and dark.
"""

from collections.abc import Callable, Sequence
from html import escape
from math import floor, log10

Number = float | int


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many."""
    span = max(high - low, 1e-9)
    raw = span / max(wanted, 1)
    power = 10 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    first = floor(low / step + 0.999999)
    return [n * step for n in range(first, floor(high / step + 1e-9) + 1)]


def short(number: float) -> str:
    """1.2M, 340k, 12."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.1f}".removesuffix(".0") + unit
    return f"{number:g}"


class Plot:
    """A frame with a scale on each side; things are drawn in the order of the calls."""

    def __init__(
        self,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        width: int = 1040,
        height: int = 260,
        margins: tuple[int, int, int, int] = (18, 16, 34, 58),
        title: str = "",
    ) -> None:
        self.top, self.right, self.bottom, self.left = margins
        self.width, self.height = width, height
        assert x[0] != x[1], "a scale has a length"
        assert y[0] != y[1], "a scale has a length"
        self.x_low, self.x_high = x
        self.y_low, self.y_high = y
        self.title = title
        self.parts: list[str] = []

    def x(self, value: Number) -> float:
        """Where a value is from the left."""
        room = self.width - self.left - self.right
        return round(self.left + (value - self.x_low) / (self.x_high - self.x_low) * room, 2)

    def y(self, value: Number) -> float:
        """Where a value is from the top."""
        room = self.height - self.top - self.bottom
        return round(self.top + (1 - (value - self.y_low) / (self.y_high - self.y_low)) * room, 2)

    def axis_x(self, ticks: Sequence[float], name: Callable[[float], str], label: str = "") -> None:
        """Marks below the frame."""
        base = self.height - self.bottom
        self.parts.append(
            f'<line class="axis" x1="{self.left}" x2="{self.width - self.right}" '
            f'y1="{base}" y2="{base}"/>'
        )
        for tick in ticks:
            self.text(self.x(tick), base + 16, name(tick), anchor="middle")
        if label:
            self.text(self.width - self.right, self.height - 3, label, anchor="end", css="label")

    def axis_y(self, ticks: Sequence[float], name: Callable[[float], str], label: str = "") -> None:
        """Lines across the frame, with their numbers."""
        for tick in ticks:
            at = self.y(tick)
            self.parts.append(
                f'<line class="grid" x1="{self.left}" x2="{self.width - self.right}" '
                f'y1="{at}" y2="{at}"/>'
            )
            self.text(self.left - 8, at + 4, name(tick), anchor="end")
        if label:
            self.text(self.left, self.top - 6, label, css="label")

    def rect(
        self,
        x: tuple[Number, Number],
        y: tuple[Number, Number],
        css: str,
        *,
        hint: str = "",
        gap: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """A filled rectangle between values."""
        left, right = self.x(x[0]), self.x(x[1])
        high, low = self.y(y[1]), self.y(y[0])
        shade = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
        self.parts.append(
            f'<rect class="{css}" x="{left + gap / 2:.2f}" y="{high:.2f}" '
            f'width="{max(right - left - gap, 0.6):.2f}" height="{max(low - high, 0):.2f}"{shade}>'
            f"{_hint(hint)}</rect>"
        )

    def steps(self, points: Sequence[tuple[Number, Number]], css: str, *, fill: str = "") -> None:
        """A line that keeps its height until the next point."""
        path = f"M{self.x(points[0][0])} {self.y(points[0][1])}"
        for at, value in points[1:]:
            path += f"H{self.x(at)}V{self.y(value)}"
        if fill:
            base = self.y(self.y_low)
            closed = f"{path}V{base}H{self.x(points[0][0])}Z"
            self.parts.append(f'<path class="{fill}" d="{closed}"/>')
        self.parts.append(f'<path class="{css}" d="{path}"/>')

    def dot(self, x: Number, y: Number, css: str, *, hint: str = "", radius: float = 2.2) -> None:
        """A mark at a value."""
        self.parts.append(
            f'<circle class="{css}" cx="{self.x(x)}" cy="{self.y(y)}" r="{radius}">'
            f"{_hint(hint)}</circle>"
        )

    def upright(self, x: Number, css: str, text: str = "", *, left: bool = False) -> None:
        """A line from top to bottom, with words at its head."""
        at = self.x(x)
        base = self.height - self.bottom
        self.parts.append(f'<line class="{css}" x1="{at}" x2="{at}" y1="{self.top}" y2="{base}"/>')
        if text:
            side, anchor = (at - 6, "end") if left else (at + 6, "start")
            self.text(side, self.top + 11, text, anchor=anchor, css=f"{css}-text")

    def text(
        self, x: Number, y: Number, text: str, *, anchor: str = "start", css: str = "tick"
    ) -> None:
        """Words at a place in the picture."""
        self.parts.append(
            f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def svg(self) -> str:
        """The picture."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.title)}">{"".join(self.parts)}</svg>'
        )


def _hint(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""
