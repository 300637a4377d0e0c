"""Commands that load when they are called, and the options they all share.

`lakebed --help` must answer at once, so the group knows its commands by name and one line of
help only. Options of the whole program may stand before or after the command's name.
"""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from lakebed.cli.config import FORMATS
from lakebed.cli.failure import ExitCode, describe, exit_code, next_step, said
from lakebed.cli.session import Session
from lakebed.cli.writing import flush
from lakebed.errors import LakebedError


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is, and what the overview says of it."""

    target: str  # "module:attribute"
    help: str
    section: str = "Commands"


class Command(click.Command):
    """A command that also takes the options of the whole program."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options(hidden=True))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say where the hidden options are explained."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Also: --catalog, --warehouse, --output … (see lakebed --help).")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def __init__(self, *args: Any, commands: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = commands
        self.params.extend(shared_options(hidden=self.name != "lakebed"))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The names, in the order of the overview."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name].target.partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command), "the table of commands names commands"
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args[0] not in self.lazy and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {args[0]!r}{self._meant(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, name: str) -> str:
        from difflib import get_close_matches  # only a mistake pays for it

        close = get_close_matches(name, self.lazy)
        return f"; did you mean {' or '.join(close)}?" if close else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The overview by section, without importing anything."""
        for section in dict.fromkeys(lazy.section for lazy in self.lazy.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [(name, x.help) for name, x in self.lazy.items() if x.section == section]
                )

    def main(  # type: ignore[override]  # click declares two overloads of it
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run, and turn each way to fail into its lines and its exit code."""
        session = Session()
        extra |= {"standalone_mode": False, "obj": session}
        try:
            code = super().main(args, prog_name, **extra)
            flush()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = ExitCode.REQUEST
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "lakebed"
            code = _fail(session, error.format_message(), f"{path} --help", ExitCode.REQUEST)
        except click.ClickException as error:
            code = _fail(session, error.format_message(), "", ExitCode.REQUEST)
        except click.Abort:
            asked = f"lakebed history {session.changing} tells whether it was committed"
            hint = asked if session.changing else ""
            code = _fail(session, "interrupted", hint, ExitCode.INTERRUPTED)
        except click.exceptions.Exit as error:  # from the last flush
            code = error.exit_code
        except LakebedError as error:
            code = _fail(session, said(error), next_step(error), exit_code(error))
        finally:
            session.close()
        sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _fail(session: Session, message: str, hint: str, code: ExitCode) -> int:
    if session.debug:
        traceback.print_exc()
    click.echo(describe(message, hint), err=True)
    return int(code)


def command(name: str, **attributes: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command of ours."""
    return click.command(name, cls=Command, **attributes)


def shared_options(*, hidden: bool) -> list[click.Option]:
    """The options of the whole program; each writes to the session, the later one wins."""

    def option(*names: str, **attributes: Any) -> click.Option:
        return click.Option(
            names, hidden=hidden, expose_value=False, callback=_remember, default=None, **attributes
        )

    return [
        option(
            "--catalog",
            metavar="URI",
            help="Catalog: sqlite:///…, postgresql://…, a path, s3://… "
            "[env: LAKEBED_CATALOG; default: sqlite:///lakebed/catalog.db]",
        ),
        option("--warehouse", metavar="URI", help="Where new tables go [env: LAKEBED_WAREHOUSE]"),
        option("--output", type=click.Choice(FORMATS), help="Form of the report [default: table]"),
        option("--quiet", is_flag=True, help="No notices, no progress, no confirmations."),
        option("--no-color", is_flag=True, help="No colours (also: NO_COLOR)."),
        option("--debug", is_flag=True, help="Show tracebacks."),
    ]


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and isinstance(ctx.obj, Session) and not ctx.resilient_parsing:
        assert param.name is not None, "each shared option has a name"
        ctx.obj.given[param.name] = value
