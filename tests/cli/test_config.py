"""Option beats environment beats file beats default, and each value knows its origin."""

from pathlib import Path
from typing import Any

import pytest

from lakebed.cli.config import DEFAULT_CATALOG, config_paths, load_settings, masked
from lakebed.errors import RequestError


@pytest.fixture
def paths(tmp_path: Path) -> Any:
    return config_paths(tmp_path / "here", {"HOME": str(tmp_path / "home")})


def put(path: Any, text: Any) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_without_anything_the_defaults_hold(paths: Any) -> None:
    settings = load_settings({}, {}, paths)
    assert settings.catalog.value == DEFAULT_CATALOG
    assert settings.catalog.source == "default"
    assert settings.options() == {}


def test_each_level_beats_the_next(paths: Any) -> None:
    here, home = paths
    put(home, '[default]\ncatalog = "home"\nwarehouse = "home-warehouse"')
    assert load_settings({}, {}, paths).catalog.value == "home"
    put(here, '[default]\ncatalog = "here"')
    settings = load_settings({}, {}, paths)
    assert (settings.catalog.value, settings.catalog.source) == ("here", f"file {here}")
    assert settings.warehouse.value == "home-warehouse"
    env = {"LAKEBED_CATALOG": "env"}
    assert load_settings({}, env, paths).catalog.source == "env LAKEBED_CATALOG"
    assert load_settings({"catalog": "option"}, env, paths).catalog.value == "option"


def test_an_empty_variable_counts_as_absent(paths: Any) -> None:
    assert load_settings({}, {"LAKEBED_CATALOG": ""}, paths).catalog.source == "default"


def test_storage_options_merge_and_the_nearer_file_wins(paths: Any) -> None:
    here, home = paths
    put(home, '[storage_options]\nAWS_REGION = "far"\nAWS_ALLOW_HTTP = true')
    put(here, '[storage_options]\nAWS_REGION = "near"')
    assert load_settings({}, {}, paths).options() == {
        "AWS_REGION": "near",
        "AWS_ALLOW_HTTP": "true",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[default", "cannot be read"),
        ('[default]\ncatalgo = "x"', "unknown settings in [default]: catalgo"),
        ("[defaults]", "unknown sections: defaults"),
        ("default = 3", "is not a section"),
        ("[default]\ncatalog = [1]", "is not text"),
        ('[default]\noutput = "xml"', "is not an output format"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(paths: Any, text: Any, complaint: Any) -> None:
    put(paths[0], text)
    with pytest.raises(RequestError) as caught:
        load_settings({}, {}, paths)
    assert complaint in str(caught.value)
    assert "lakebed.toml" in str(caught.value)


def test_secrets_are_never_shown(paths: Any) -> None:
    put(
        paths[0],
        "[storage_options]\nAWS_SECRET_ACCESS_KEY = 'hunter2'\nAWS_SESSION_TOKEN = 'hunter2'\n"
        "AWS_REGION = 'eu'\n[default]\nwarehouse = 's3://me:hunter2@host/x'",
    )
    env = {"LAKEBED_CATALOG": "postgresql://me:hunter2@db/lake?sslpassword=hunter2"}
    shown = load_settings({}, env, paths).shown()
    assert "hunter2" not in repr(shown)
    assert dict(shown)["catalog"].value == "postgresql://me:****@db/lake?sslpassword=****"
    assert dict(shown)["storage_options.AWS_REGION"].value == "eu"


def test_a_uri_without_password_is_shown_as_it_is() -> None:
    for uri in ("sqlite:////abs/catalog.db", "s3://bucket/a@b:c/d", "postgresql://me@db:5432/x"):
        assert masked("", uri) == uri


def test_xdg_moves_the_users_file(tmp_path: Path) -> None:
    found = config_paths(tmp_path, {"XDG_CONFIG_HOME": "/xdg", "HOME": "/home/me"})
    assert str(found[1]) == "/xdg/lakebed/config.toml"
    assert len(config_paths(tmp_path, {})) == 1
