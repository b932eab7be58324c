"""Which rule of an audit policy decides, as kube-apiserver's policy checker finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.audit.policy import Decision, Policy, PolicyError, load_policy
from apiserver.request import User, parse_request

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
ANNE = User("anne", groups=("dev", "system:authenticated"))
POD = "/api/v1/namespaces/default/pods/busybox"


def policy(tmp_path: Path, text: str) -> Policy:
    tmp_path.joinpath("policy").write_text(HEAD + text)
    return load_policy(tmp_path / "policy")


@pytest.mark.parametrize(
    ("rule", "method", "target", "matches"),
    [
        ("{}", "GET", POD, True),
        ("{users: [anne]}", "GET", POD, True),
        ("{users: [bob]}", "GET", POD, False),
        ("{userGroups: [ops, dev]}", "GET", POD, True),
        ("{userGroups: [ops]}", "GET", POD, False),
        ("{verbs: [get, list]}", "GET", POD, True),
        ("{verbs: [list]}", "GET", POD, False),
        ("{namespaces: [default]}", "GET", POD, True),
        ("{namespaces: [other]}", "GET", POD, False),
        ('{namespaces: [""]}', "GET", "/api/v1/nodes/n", True),
        ("{namespaces: [default]}", "GET", "/healthz", False),
        ("{resources: [{}]}", "GET", POD, True),
        ("{resources: [{group: ''}]}", "GET", "/apis/apps/v1/namespaces/d/deployments/x", False),
        ("{resources: [{group: '*'}]}", "GET", "/apis/apps/v1/namespaces/d/deployments/x", True),
        ("{resources: [{resources: [pods]}]}", "GET", POD, True),
        ("{resources: [{resources: [pods]}]}", "GET", f"{POD}/log", False),
        ("{resources: [{resources: [pods/log]}]}", "GET", f"{POD}/log", True),
        ("{resources: [{resources: ['*']}]}", "GET", f"{POD}/log", True),
        ("{resources: [{resources: ['*/log']}]}", "GET", f"{POD}/log", True),
        ("{resources: [{resources: ['*/log']}]}", "GET", POD, False),
        ("{resources: [{resources: ['pods/*']}]}", "GET", POD, True),
        ("{resources: [{resources: ['pods/*']}]}", "GET", f"{POD}/log", True),
        ("{resources: [{resources: ['pods/*']}]}", "GET", "/api/v1/namespaces/d/secrets/x/log", False),
        ("{resources: [{resources: [pods], resourceNames: [busybox]}]}", "GET", POD, True),
        ("{resources: [{resources: [pods], resourceNames: [other]}]}", "GET", POD, False),
        ("{resources: [{resources: [pods]}]}", "GET", "/healthz", False),
        ("{nonResourceURLs: ['/healthz*']}", "GET", "/healthz/ping", True),
        ("{nonResourceURLs: ['/healthz']}", "GET", "/healthz/ping", False),
        ("{nonResourceURLs: ['*']}", "GET", "/metrics", True),
        ("{nonResourceURLs: ['*']}", "GET", POD, False),
    ],
)
def test_a_rule_is_about_requests(tmp_path: Path, rule: str, method: str, target: str, matches: bool) -> None:
    fields = rule.strip("{}") if rule != "{}" else ""
    rules = policy(tmp_path, f"rules: [{{level: Metadata{', ' + rule[1:-1] if fields else ''}}}]\n")
    decision = rules.decide(ANNE, parse_request(method, target))
    assert decision.level == ("Metadata" if matches else "None")


def test_the_first_rule_that_matches_decides_and_stages_add_up(tmp_path: Path) -> None:
    rules = policy(
        tmp_path,
        """
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: [nobody]}
- {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}
- {level: Metadata, omitStages: }
""",
    )
    assert rules.decide(ANNE, parse_request("GET", POD)) == Decision("Request", frozenset({"RequestReceived", "Panic"}), False)
    assert rules.decide(ANNE, parse_request("PUT", POD)) == Decision("Metadata", frozenset({"RequestReceived"}), True)


def test_somebody_unknown_matches_no_rule_about_users(tmp_path: Path) -> None:
    rules = policy(tmp_path, "rules: [{level: Request, users: [anne]}, {level: Request, userGroups: [dev]}, {level: Metadata}]")
    assert rules.decide(None, parse_request("GET", POD)).level == "Metadata"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules: []", "rules: "),
        ("rules: [{level: Loud}]", "rules.0.level: "),
        ("rules: [{users: [x]}]", "rules.0.level: Field required"),
        ("rules: [{level: None, nonResourceURLs: [healthz]}]", "must begin with a '/' character"),
        ("rules: [{level: None, nonResourceURLs: ['/a*b']}]", "must be the final character"),
        ("rules: [{level: None, nonResourceURLs: ['/a'], namespaces: [a]}]", "cannot apply to both"),
        ("rules: [{level: None, resources: [{group: apps/v1}]}]", "is no API group"),
        ("rules: [{level: None, resources: [{resourceNames: [x]}]}]", "requires at least one resource"),
        ("omitStages: [Never]\nrules: [{level: None}]", "omitStages.0: "),
        ("rules: [", "is no YAML"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=r"\A[^\n]*\Z") as told:
        policy(tmp_path, text)
    assert problem in str(told.value)


def test_a_file_that_is_not_there_or_of_another_kind_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot read"):
        load_policy(tmp_path / "none")
    tmp_path.joinpath("policy").write_text("apiVersion: v1\nkind: Pod\n")
    with pytest.raises(PolicyError, match="apiVersion"):
        load_policy(tmp_path / "policy")


def test_fields_that_nobody_knows_are_told_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    policy(tmp_path, "rules: [{level: Metadata, resource: [pods]}]\n")
    assert 'unknown field "rules[0].resource" is ignored' in caplog.text
