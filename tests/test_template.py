"""What neither `sam validate --lint` nor `cfn-lint` sees in template.yaml."""

import importlib
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml

from handler.artifact import CHECKOUT, CONFIG, FOLDER, PLATFORMS, PYTHON
from handler.settings import Settings, variables

TEXT = (CHECKOUT / "template.yaml").read_text()

LIBPQ = {"PGDATABASE", "PGHOST", "PGSSLMODE"}
"""Read by the database's own library."""

GATEWAY_SECONDS = 30


class _Loader(yaml.SafeLoader):
    """Reads `!Ref x` as {"Ref": "x"}, and so on."""


def _function(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {tag: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {tag: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {tag: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)

TEMPLATE: dict[str, Any] = yaml.load(TEXT, _Loader)
GLOBALS: dict[str, Any] = TEMPLATE["Globals"]["Function"]
RESOURCES: dict[str, dict[str, Any]] = TEMPLATE["Resources"]
FUNCTIONS: dict[str, dict[str, Any]] = {
    name: resource["Properties"]
    for name, resource in RESOURCES.items()
    if resource["Type"] == "AWS::Serverless::Function"
}

OF_THE_FUNCTION = {"Events", "Policies", "ReservedConcurrentExecutions"}
"""Properties that hold for all versions of a function at once."""


def environ(function: dict[str, Any]) -> dict[str, Any]:
    own = function.get("Environment", {}).get("Variables", {})
    return {**GLOBALS["Environment"]["Variables"], **own}


def references(value: Any) -> Iterator[str]:
    """What is named by `!Ref`, `!GetAtt` and `!Sub`, anywhere below and in the conditions of it."""
    if isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            if key in ("Ref", "GetAtt"):
                yield str(member).partition(".")[0]
            elif key == "Sub":
                yield from re.findall(r"\$\{(\w+)", member)
            else:
                yield from references(member)
            if key == "If":
                yield from references(TEMPLATE["Conditions"][member[0]])
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from references(member)


def test_the_runtime_is_what_the_artifact_is_built_for() -> None:
    assert GLOBALS["Runtime"] == f"python{PYTHON}"
    assert GLOBALS["CodeUri"] == FOLDER.as_posix()
    assert set(TEMPLATE["Parameters"]["Architecture"]["AllowedValues"]) == set(PLATFORMS)
    assert TEMPLATE["Parameters"]["Architecture"]["Default"] == "arm64"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_handler_exists(name: str) -> None:
    module, _, attribute = FUNCTIONS[name]["Handler"].rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(environ(FUNCTIONS[name])) <= set(variables()) | LIBPQ
    assert environ(FUNCTIONS[name])["INTERMEZZO_CONFIG"] == CONFIG


def test_the_endpoint_has_every_variable_that_it_can_not_do_without() -> None:
    given = dict.fromkeys(environ(FUNCTIONS["EndpointFunction"]), "")
    secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:any-AbCdEf"
    given |= {"DATABASE_URL": secret, "REQUEST_STATE_KEYS": secret}
    Settings.from_environ(given, required=("database_url", "request_state_keys"))


def test_no_secret_stands_in_a_variable() -> None:
    for function in FUNCTIONS.values():
        assert environ(function)["DATABASE_URL"] == {"Ref": "DatabaseSecretArn"}
    keys = environ(FUNCTIONS["EndpointFunction"])["REQUEST_STATE_KEYS"]
    assert keys == {"Ref": "RequestStateKeys"}
    assert RESOURCES["RequestStateKeys"]["Type"] == "AWS::SecretsManager::Secret"
    assert "resolve:" not in TEXT


def test_every_schedule_is_one_that_the_scheduler_takes() -> None:
    schedules = re.findall(r"ScheduleExpression: ([^}\n]+)", TEXT)
    assert schedules
    for schedule in schedules:
        assert re.fullmatch(r"rate\((1 (minute|hour|day)|\d+ (minutes|hours|days))\)", schedule)


def test_the_endpoint_ends_before_its_gateway_gives_up() -> None:
    assert FUNCTIONS["EndpointFunction"]["Timeout"] < GATEWAY_SECONDS


def test_a_deployment_waits_longer_for_a_migration_than_the_migration_may_take() -> None:
    migration = RESOURCES["Migration"]["Properties"]
    assert FUNCTIONS["MigrateFunction"]["Timeout"] < int(migration["ServiceTimeout"]) <= 3600
    assert migration["Code"] == {"Ref": "MigrateFunction.Version"}, "another one with other code"


def test_whatever_a_version_of_the_endpoint_is_made_of_makes_another_one() -> None:
    endpoint = {**GLOBALS, **FUNCTIONS["EndpointFunction"]}
    made_of = {name: each for name, each in endpoint.items() if name not in OF_THE_FUNCTION}
    made_of["Environment"] = environ(endpoint)
    named = (*TEMPLATE["Parameters"], *RESOURCES)
    reached = {name for name in references(made_of) if name in named} - {"Migration"}
    assert {"DatabaseHost", "JwtIssuer", "ProxiedInstance", "VpcSubnetIds"} <= reached
    assert reached <= set(references(RESOURCES["Migration"]))


def test_lambda_publishes_the_version_that_other_parameters_ask_for() -> None:
    endpoint = FUNCTIONS["EndpointFunction"]
    assert endpoint["VersionDescription"] == {"GetAtt": "Migration.Fingerprint"}
    assert "${Migration.Fingerprint}" in endpoint["Description"]["Sub"], "it publishes no copy"


def test_a_proxy_has_its_target_before_the_endpoint_uses_it() -> None:
    assert "DatabaseProxyTargets" in references(RESOURCES["Migration"])


def test_every_role_that_reads_the_databases_secret_may_decrypt_it() -> None:
    policy = {"Ref": "ReadDatabaseSecret"}
    for function in FUNCTIONS.values():
        assert policy in function["Policies"]
    assert policy in RESOURCES["DatabaseProxyRole"]["Properties"]["ManagedPolicyArns"]
    document = RESOURCES["ReadDatabaseSecret"]["Properties"]["PolicyDocument"]
    actions = {each["Action"] for each in document["Statement"]}
    assert actions == {"secretsmanager:GetSecretValue", "kms:Decrypt"}


def test_logs_are_not_kept_for_ever() -> None:
    assert GLOBALS["LoggingConfig"]["LogGroup"] == {"Ref": "Logs"}
    assert RESOURCES["Logs"]["Properties"] == {"RetentionInDays": {"Ref": "LogRetentionDays"}}


def evaluated(expression: Any, given: dict[str, Any]) -> Any:
    """The value of a rule's expression, as CloudFormation's documentation has it."""
    if isinstance(expression, list):
        return [evaluated(each, given) for each in cast("list[Any]", expression)]
    if not isinstance(expression, dict):
        return expression
    [(name, inner)] = cast("dict[str, Any]", expression).items()
    if name == "Ref":
        return given[inner]
    values = evaluated(inner, given)
    match name:
        case "Equals":
            return values[0] == values[1]
        case "Fn::EachMemberEquals":
            return all(each == values[1] for each in values[0])
        case "Not":
            return not values[0]
        case _:
            assert name == "Or"
            return any(values)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({}, False),
        ({"PublicUrl": "https://here"}, False),
        ({"ProxiedInstance": "one"}, True),
        ({"ProxiedInstance": "one", "VpcSubnetIds": ["subnet-1"]}, False),
        ({"JwtIssuer": "https://login"}, True),
        ({"JwtJwks": "https://login/keys"}, True),
        ({"JwtIssuer": "https://login", "JwtJwks": "https://login/keys"}, True),
        (
            {
                "JwtIssuer": "https://login",
                "JwtJwks": "https://login/keys",
                "PublicUrl": "https://here",
            },
            False,
        ),
    ],
)
def test_half_a_configuration_is_refused_before_anything_is_made(
    given: dict[str, Any], refused: bool
) -> None:
    defaults = {
        name: [""] if each["Type"] == "CommaDelimitedList" else each.get("Default", "")
        for name, each in TEMPLATE["Parameters"].items()
    }
    chosen = {**defaults, **given}
    met = [
        evaluated(each["Assert"], chosen)
        for rule in TEMPLATE["Rules"].values()
        if evaluated(rule["RuleCondition"], chosen)
        for each in rule["Assertions"]
    ]
    assert refused == (not all(met))


def test_every_parameter_says_what_it_is_and_is_used() -> None:
    used = set(references(TEMPLATE))
    for name, parameter in TEMPLATE["Parameters"].items():
        assert parameter["Description"], name
        assert name in used, name


def test_the_outputs_are_urls_that_a_client_pastes() -> None:
    for output in TEMPLATE["Outputs"].values():
        assert output["Value"]["Sub"].endswith("mcp")


def test_no_name_is_the_same_in_two_stacks_or_grows_with_a_stacks_own() -> None:
    for match in re.finditer(r"(?:\bName|DBProxyName): (.+)", TEXT):
        assert "AWS::StackId" in match[1] or match[1].startswith("!Ref"), match[0]
    assert "AWS::StackName" not in TEXT
    for function in FUNCTIONS.values():
        for event in function.get("Events", {}).values():
            assert event["Type"] != "ScheduleV2" or event["Properties"]["OmitName"]
