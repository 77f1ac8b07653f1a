"""langgraph.json itself: what is read from it, and everything that is wrong with one."""

from pathlib import Path

import pytest

from core.catalog import Catalog
from tests.projects import CHECKOUT, GRAPH, Write, problems

pytestmark = pytest.mark.anyio


class TestSettings:
    def test_what_langgraph_json_says_is_exposed(self, project: Write) -> None:
        catalog = Catalog.read(
            project(
                {"agent.py": GRAPH, ".env": "A=1"},
                auth={"path": "./auth.py:auth"},
                checkpointer={
                    "ttl": {"default_ttl": 30},
                    "serde": {
                        "allowed_msgpack_modules": [["a.b", "C"]],
                        "allowed_json_modules": [["a", "b", "C"]],
                        "pickle_fallback": True,
                    },
                },
                env=".env",
                http={"disable_threads": True},
            )
        )
        assert catalog.default_ttl == 30
        assert catalog.threads is False
        assert catalog.auth_path == "./auth.py:auth"
        assert isinstance(catalog.env, Path)
        assert catalog.env.read_text() == "A=1"
        assert catalog.serde.msgpack == (("a.b", "C"),)
        assert catalog.serde.json == (("a.b", "C"),)
        assert catalog.serde.pickle is True
        assert catalog.warnings == ()

    def test_what_it_does_not_say_is_off(self, project: Write) -> None:
        catalog = Catalog.read(project({"agent.py": GRAPH}, env={}))
        settings = catalog.default_ttl, catalog.threads, catalog.env, catalog.auth_path
        assert settings == (None, True, None, None)
        assert catalog.serde.msgpack == ()

    def test_variables_may_stand_in_the_file(self, project: Write) -> None:
        assert Catalog.read(project({"agent.py": GRAPH}, env={"A": "1"})).env == {"A": "1"}

    def test_a_missing_env_file_is_a_warning(self, project: Write) -> None:
        catalog = Catalog.read(project({"agent.py": GRAPH}, env=".env"))
        assert catalog.env is None
        assert "'.env'" in catalog.warnings[0]

    def test_other_keys_are_named_in_one_warning(self, project: Write) -> None:
        catalog = Catalog.read(
            project(
                {"agent.py": GRAPH},
                **{"$schema": "https://langgra.ph/schema.json"},
                checkpointer={"ttl": {"default_ttl": 1, "strategy": "delete"}, "path": "a:b"},
                dockerfile_lines=[],
                grahps={},
                http={"app": "a:b"},
                store={"index": {}},
                ui={},
            )
        )
        assert catalog.warnings == (
            "not used here: checkpointer.path, checkpointer.ttl.strategy, dockerfile_lines,"
            " http.app, store, ui; unknown: grahps",
        )


def test_every_problem_of_a_file_is_told_at_once(project: Write) -> None:
    text = problems(
        project(
            {"agent.py": GRAPH},
            {
                "Deploy Service": "./agent.py:graph",
                "no_attribute": "./agent.py",
                "no_file": "./agnet.py:graph",
                "number": 3,
                "script": "./agent.ts:graph",
                "described": {"path": "./agent.py:graph", "description": 3},
                "list": {"path": "./agent.py:graph", "input_schema": {"type": "array"}},
            },
            auth={"path": "nothing"},
            checkpointer={
                "ttl": {"default_ttl": -1},
                "serde": {"allowed_msgpack_modules": ["a.b.C"]},
            },
            dependencies=["./missing", 3],
            env={"A": 1},
            http={"disable_threads": "yes"},
        )
    )
    for told in (
        "'Deploy_Service' would do",
        "must name an attribute, such as ./agent.py:graph",
        "there is no file './agnet.py' (did you mean './agent.py'?)",
        "graphs.'number': must be \"path.py:attribute\"",
        "'./agent.ts' is JavaScript",
        "graphs.'described'.description: must be a string",
        "graphs.'list'.input_schema: must be a JSON Schema whose root",
        "auth.path: 'nothing' must name a file and an attribute",
        "checkpointer.ttl.default_ttl: -1 is no number of minutes",
        'checkpointer.serde.allowed_msgpack_modules: must list classes as ["module", "Name"]',
        "dependencies: there is no folder './missing'",
        "dependencies: 3 is not a string",
        "env: the value of A must be a string",
        "http.disable_threads: must be true or false",
    ):
        assert told in text
    assert text.count("\n- ") == 14


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    config = tmp_path / "langgraph.json"
    config.write_text(text)
    assert str(config) in problems(config)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "langgraph.json"
    config.write_text('{"graphs": {"a": "./a.py:graph", "a": "./b.py:graph"}}')
    assert "an object has two members called 'a'" in problems(config)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in problems(tmp_path / "langgraph.json")


@pytest.mark.parametrize("graphs", ["{}", "[]", '"x"', "null"])
def test_a_file_without_graphs_is_refused(tmp_path: Path, graphs: str) -> None:
    config = tmp_path / "langgraph.json"
    config.write_text(f'{{"graphs": {graphs}}}')
    assert "graphs: name at least one" in problems(config)


def test_two_names_that_differ_by_case_alone_are_refused(project: Write) -> None:
    graphs = {"Deploy": "./agent.py:graph", "deploy": "./agent.py:graph"}
    assert "'deploy': differs from 'Deploy' by case alone" in problems(
        project({"agent.py": GRAPH}, graphs)
    )


def test_a_long_name_is_a_warning(project: Write) -> None:
    path = project({"agent.py": GRAPH}, {"a" * 41: "./agent.py:graph"})
    (warning,) = Catalog.read(path).warnings
    assert "above 40 characters" in warning


@pytest.mark.parametrize("file", ["core/llm.py", "core/deep/er.py", "handler.py"])
def test_a_project_with_a_core_or_handler_of_its_own_is_refused(project: Write, file: str) -> None:
    text = problems(project({"agent.py": GRAPH, file: ""}))
    package = file.split("/")[0].removesuffix(".py")
    assert f"holds a package '{package}' of its own" in text
    assert text.count("\n- ") == 1


def test_so_is_one_in_a_local_dependency(project: Write) -> None:
    path = project({"agent.py": GRAPH, "lib/core/llm.py": ""}, dependencies=["./lib"])
    assert "holds a package 'core' of its own" in problems(path)


def test_a_folder_of_that_name_without_python_does_no_harm(project: Write) -> None:
    Catalog.read(project({"agent.py": GRAPH, "core/notes.txt": ""}))


def test_our_own_checkout_is_served() -> None:
    Catalog.read(CHECKOUT / "langgraph.json")
