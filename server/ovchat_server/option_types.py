"""What click knows of an option: where its value came from, its type, and its line of --help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource
from msgspec import Meta

from ovchat_server.config_file import SettingError
from ovchat_server.near_names import did_you_mean_path
from ovchat_server.setting_values import HERE, read_value, wrong
from ovchat_server.settings import ModelName, ModelSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

ENVIRONMENT_PREFIX = "OVCHAT_"


class Value(click.ParamType[Any]):
    """A type as the config file has them, for text, too."""

    def __init__(self, kind: Any, metavar: str) -> None:  # noqa: ANN401
        """Take msgspec's type, and the word for a value in --help."""
        self.kind = kind
        self.name = metavar

    def read(self, value: object, *, text: bool = False, folder: Path = HERE) -> Any:  # noqa: ANN401
        """Return a value as the type; paths are relative to a folder.

        Raises:
            ValueError: It is wrong: "must be ..., got ...".
        """
        return read_value(self.kind, value, text=text, folder=folder)

    def convert(
        self,
        value: object,
        param: click.Parameter | None,  # noqa: ARG002  click's signature
        ctx: click.Context | None,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401
        """Return text as a value; values of the config file and defaults are values already."""
        return self.read(value, text=True) if isinstance(value, str) else value

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that a value may be, or have the shell complete a path."""
        # Only who completes pays for it.
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        if self.kind is Path:
            return [CompletionItem(incomplete, type="file")]
        words = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


class Word(Value):
    """One of a few words, in capitals or not."""

    def read(self, value: object, *, text: bool = False, folder: Path = HERE) -> Any:  # noqa: ANN401
        """Return a value as the type."""
        if isinstance(value, str) and value.lower() in get_args(self.kind):
            value = value.lower()
        return super().read(value, text=text, folder=folder)


class ExistingFile(Value):
    """The path of a file that is there."""

    def __init__(self) -> None:
        """Take any path."""
        super().__init__(Path, "FILE")

    def read(self, value: object, *, text: bool = False, folder: Path = HERE) -> Path:
        """Return the path."""
        path: Path = super().read(value, text=text, folder=folder)
        what = _what_is_at(path, "a file", value)
        if what == "folder":
            raise wrong("a file", value, but=", which is a folder")
        if not what:
            raise wrong("a file", value, but=", which does not exist" + did_you_mean_path(path))
        return path


class Folder(Value):
    """The path of a folder, which may be made later."""

    def __init__(self) -> None:
        """Take any path."""
        super().__init__(Path, "FOLDER")

    def read(self, value: object, *, text: bool = False, folder: Path = HERE) -> Path:
        """Return the path."""
        path: Path = super().read(value, text=text, folder=folder)
        if _what_is_at(path, "a folder", value) == "file":
            raise wrong("a folder", value, but=", which is a file")
        return path


def _what_is_at(path: Path, expected: str, value: object) -> str:
    """Return "file", "folder" or nothing."""
    try:
        return "folder" if path.is_dir() else "file" if path.exists() else ""
    except OSError as error:
        # A folder on the way to it may not be read, say.
        raise wrong(expected, value, but=f", which cannot be read: {error.strerror}") from error


class Listed(Value):
    """Words, separated by commas or as an array."""

    def read(self, value: object, *, text: bool = False, folder: Path = HERE) -> Any:  # noqa: ANN401
        """Return the words."""
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        return super().read(value, text=text, folder=folder)


class Domains(Listed):
    """Hosts."""

    def __init__(self) -> None:
        """Take hosts as URLs have them, perhaps with a port."""
        host = r"^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$"
        hosts = tuple[Annotated[str, Meta(pattern=host)], ...]
        said = "hosts without https:// and path, such as images.example.com"
        super().__init__(Annotated[hosts, Meta(description=said)], "DOMAINS")


class Origins(Listed):
    """Origins of pages."""

    def __init__(self) -> None:
        """Take origins as browsers write them: another spelling would never be met."""
        host = r"([a-z0-9_]([a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\])"
        origin = rf"^(\*|(?!https://.*:443$|http://.*:80$)[a-z][a-z0-9+.-]*://{host}(:[0-9]+)?)\Z"
        origins = tuple[Annotated[str, Meta(pattern=origin)], ...]
        said = (
            "origins as browsers send them, such as https://app.example or http://localhost:3000: "
            "small letters, no path, no port that is the scheme's own; or *"
        )
        super().__init__(Annotated[origins, Meta(description=said)], "ORIGINS")


class NamedPath(Value):
    """NAME=PATH."""

    def __init__(self) -> None:
        """Take a model's name and path."""
        super().__init__(str, "NAME=PATH")

    def read(self, value: object, **_: object) -> ModelSettings:
        """Return a model with default settings."""
        name, _separator, path = str(value).partition("=")
        if not path:
            raise wrong("NAME=PATH, such as demo=models/demo", value)
        try:
            return ModelSettings(name=read_value(ModelName, name), path=Path(path))
        except ValueError as error:
            raise ValueError(f"NAME=PATH: NAME {error}") from error


class Switch(click.types.BoolParamType):
    """True or false."""

    def read(self, value: object, **_: object) -> bool:
        """Return a value of the config file."""
        found: bool = read_value(bool, value)
        return found

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> bool:
        """Return text as click reads it: "yes" and "on" are true."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise wrong("true or false", value) from error


class Setting(click.Option):
    """An option that is a flag, an environment variable and a key of [server].

    Attributes:
        section: The heading it has in --help.
        commands: Those that have it.
    """

    def __init__(
        self,
        flag: str,
        kind: Value | Switch,
        help: str,  # noqa: A002  click's word
        *,
        section: str,
        commands: Sequence[str] = ("up", "serve"),
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        """Declare an option; further attributes are click's."""
        self.section = section
        self.commands = commands
        self.kind = kind
        name = flag.partition("/")[0].removeprefix("--")
        environment = ENVIRONMENT_PREFIX + name.replace("-", "_").upper()
        attributes = {"show_default": True, **attributes}
        super().__init__([flag], type=kind, envvar=environment, help=help, **attributes)

    def process_value(self, ctx: click.Context, value: Any) -> Any:  # noqa: ANN401
        """Return a value as its type; what is wrong is told with where it came from."""
        try:
            return super().process_value(ctx, value)
        except ValueError as error:
            if ctx.get_parameter_source(self.name or "") is ParameterSource.ENVIRONMENT:
                raise SettingError(f"{self.envvar} {error}") from error
            raise click.UsageError(f"{self.opts[0]} {error}") from error
