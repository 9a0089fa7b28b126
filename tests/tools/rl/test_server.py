"""The interface of ChainerRL Visualizer, and what keeps others out."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from websockets.sync.client import connect

from hagane.tools.rl.server.app import make_app

from .conftest import AGENTS, Served, serving


def test_a_rollout_is_logged_line_by_line(balancing: Served) -> None:
    made = balancing.roll_out(60, seed=3)
    assert made["is_rollout_started"] is True
    assert made["rollout_path"].endswith(made["rollout_id"])
    assert balancing.finished(made["job"])["status"] == "done"
    lines = balancing.lines(made["rollout_id"])
    assert [line["step"] for line in lines] == list(range(60))
    assert {"reward", "action", "image_path", "action_probs", "state_value"} <= lines[0].keys()
    answer = balancing.get(f"/api/rollouts/{made['rollout_id']}")
    assert answer["rollout_log"] == lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer["last_updated"])
    picture = balancing.client.get("/images", params={"image_path": lines[7]["image_path"]})
    assert picture.headers["content-type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")
    assert made["rollout_id"] in balancing.get("/api/rollouts")["rollout_ids"]
    latest = balancing.get("/api/rollouts?q=latest")
    assert latest == {"rollout_id": made["rollout_id"], "rollout_path": made["rollout_path"]}
    state = balancing.get("/api/server_state")
    assert {"is_job_running": False, "is_rollout_on_memory": True}.items() <= state.items()


def test_the_same_seed_gives_the_same_rollout(balancing: Served) -> None:
    made = [balancing.roll_out(30, seed=11) for _ in range(2)]
    for one in made:
        balancing.finished(one["job"])
    first, second = (balancing.lines(one["rollout_id"]) for one in made)
    assert [line["action_probs"] for line in first] == [line["action_probs"] for line in second]


def test_the_profile_says_what_the_agent_shows(balancing: Served) -> None:
    for _ in range(200):
        profile = balancing.get("/api/agent_profile")
        if profile["state_value_returned"]:
            break
        time.sleep(0.05)
    assert profile["agent_type"] == "Balancer"
    assert profile["distribution_type"] == "SoftmaxDistribution"
    assert profile["action_value_type"] is None
    assert profile["action_meanings"] == {"0": "left", "1": "right"}
    assert profile["raw_image_input"] is False
    assert profile["contains_recurrent_model"] is False


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "expected JSON"),
        (b"[1]", 400, "expected an object of JSON"),
        (b"", 400, "expected JSON"),
        (b"[" * 100_000, 400, "expected JSON"),
        (b"\xff\xfe", 400, "expected JSON"),
        (b"{}", 422, "step_count: expected a whole number, got nothing"),
        (b'{"step_count": "many"}', 422, "step_count: expected a whole number, got str 'many'"),
        (b'{"step_count": true}', 422, "step_count: expected a whole number"),
        (b'{"step_count": 0}', 422, "from 1 to 1000000, got 0"),
        (b'{"step_count": -5}', 422, "from 1 to 1000000, got -5"),
        (b'{"step_count": 1e999}', 422, "step_count"),
        (b'{"step_count": 10, "seed": -1}', 422, "seed: expected a number from 0"),
        (b'{"step_count": 10, "agent": 4}', 422, "agent: expected a number from 0 to 0, got 4"),
        (b'{"step_count": ' + b"9" * 5000 + b"}", 422, ""),
    ],
)
def test_bad_bodies_are_refused(balancing: Served, body: bytes, status: int, words: str) -> None:
    answer = balancing.client.post("/api/rollouts", content=body)
    assert answer.status_code in ({status} if words else {400, 422})
    assert words in answer.json()["error"]


def test_large_bodies_are_refused_with_and_without_a_length(balancing: Served) -> None:
    for size in (1_000_001, 20_000_000):
        assert balancing.client.post("/api/rollouts", content=b" " * size).status_code == 413
    pieces = (b" " * 65536 for _ in range(320))
    assert balancing.client.post("/api/rollouts", content=pieces).status_code == 413
    bare = httpx.post(f"{balancing.base}/api/rollouts", content=b" " * 5_000_000)
    assert bare.status_code == 401
    assert balancing.client.get("/api/server_state").status_code == 200


PATHS = ("/", "/page/app.js", "/images?image_path=x", "/api/server_state", "/api/rollouts", "/none")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(balancing: Served, path: str) -> None:
    bare = httpx.get(balancing.base + path)
    assert bare.status_code == 401
    assert "set-cookie" not in bare.headers
    assert balancing.token not in bare.text
    wrong = httpx.get(balancing.base + path, headers={"Authorization": "Bearer wrong"})
    assert wrong.status_code == 403
    empty = httpx.get(f"{balancing.base}{path}{'&' if '?' in path else '?'}token=")
    assert empty.status_code == 401


def test_no_cookie_is_set_and_the_token_may_stand_in_the_address(balancing: Served) -> None:
    page = httpx.get(balancing.address)
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_hosts_and_origins_are_refused(balancing: Served, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/api/rollouts"), ("POST", "/api/rollouts")):
        answer = balancing.client.request(
            method, path, headers=headers, content=b'{"step_count":1}'
        )
        assert answer.status_code == 403
        assert next(iter(headers)) in answer.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "rollouts/../../secret.png",
        "%2e%2e/secret.png",
        "file:///etc/passwd",
    ],
)
def test_no_picture_leads_out_of_the_log_folder(balancing: Served, path: str) -> None:
    (balancing.folder.parent / "secret.png").write_bytes(b"secret")
    answer = balancing.client.get("/images", params={"image_path": path})
    assert answer.status_code == 404
    assert "not one of this log folder" in answer.json()["error"]


def test_links_out_of_the_log_folder_are_not_followed(balancing: Served, tmp_path: Path) -> None:
    (tmp_path / "rollout_log.jsonl").write_text('{"step": 0, "secret": 1}\n')
    (tmp_path / "secret.png").write_bytes(b"secret")
    rollouts = balancing.folder / "rollouts"
    (rollouts / "linked").symlink_to(tmp_path)
    inner = rollouts / "inner"
    (inner / "images").mkdir(parents=True)
    (inner / "rollout_log.jsonl").symlink_to(tmp_path / "rollout_log.jsonl")
    (inner / "images" / "a.png").symlink_to(tmp_path / "secret.png")
    (inner / "explanations").symlink_to(tmp_path)
    try:
        assert "linked" not in balancing.get("/api/rollouts")["rollout_ids"]
        assert balancing.client.get("/api/rollouts/linked").status_code == 404
        assert balancing.get("/api/rollouts/inner")["rollout_log"] == []
        image = balancing.client.get("/images?image_path=rollouts/inner/images/a.png")
        assert image.status_code == 404
        assert balancing.get("/api/rollouts/inner/explanations")["explanations"] == []
    finally:
        (rollouts / "linked").unlink()
        (inner / "rollout_log.jsonl").unlink()


def test_unknown_rollouts_jobs_and_methods_are_named(balancing: Served) -> None:
    client = balancing.client
    assert "there is none" in client.get("/api/rollouts/none").json()["error"]
    assert client.get("/api/rollouts/..%2f..%2fetc").status_code == 404
    assert client.delete("/api/jobs/999").status_code == 404
    assert client.put("/api/rollouts").status_code == 405
    assert client.get("/page/..%2f__init__.py").status_code == 404


def test_two_hundred_connections_leave_the_server_answering(balancing: Served) -> None:
    port = int(balancing.base.rpartition(":")[2])
    open_ones = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    try:
        for one in open_ones[:100]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert balancing.client.get("/api/server_state").status_code == 200
    finally:
        for one in open_ones:
            one.close()


def test_news_of_jobs_come_over_a_web_socket_and_jobs_are_cancelled_there(
    balancing: Served,
) -> None:
    address = balancing.base.replace("http", "ws") + f"/api/live?token={balancing.token}"
    with connect(address, origin=balancing.base) as socket:
        assert json.loads(socket.recv(10))["type"] == "state"
        job = balancing.roll_out(100_000)["job"]
        socket.send("not JSON")
        seen = []
        while not seen or not seen[-1]["over"]:
            news = json.loads(socket.recv(30))
            if news["id"] == job:
                seen.append(news)
                if news["done"] > 0:
                    socket.send(json.dumps({"cancel": job}))
    assert seen[-1]["status"] == "cancelled"
    assert 0 < seen[-1]["done"] < 100_000


def test_web_sockets_of_others_are_refused(balancing: Served) -> None:
    address = balancing.base.replace("http", "ws") + "/api/live"
    for query, origin in (
        ("", balancing.base),
        (f"?token={balancing.token}", "http://evil.example"),
    ):
        with pytest.raises(Exception, match="40"), connect(address + query, origin=origin):
            pass


def test_columns_come_in_binary_and_steps_are_found(balancing: Served) -> None:
    made = balancing.roll_out(20)
    balancing.finished(made["job"])
    path = f"/api/rollouts/{made['rollout_id']}"
    raw = balancing.client.get(f"{path}/series?from=5").content
    size = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + size])
    assert header["steps"] == 20
    assert len(raw) == 4 + size + 4 * 15 * len(header["columns"])
    found = balancing.get(f"{path}/search?where=reward = 1")
    assert found["count"] == 20
    answer = balancing.client.get(f"{path}/search?where=speed > 1")
    assert answer.status_code == 422
    assert "has no 'speed'" in answer.json()["error"]


def test_explanations_are_refused_where_nothing_can_be_explained(balancing: Served) -> None:
    made = balancing.roll_out(5)
    balancing.finished(made["job"])
    path = f"/api/rollouts/{made['rollout_id']}/saliency"
    for body, words in (
        ({"from_step": 3, "to_step": 1}, "to_step: expected at least from_step (3), got 1"),
        ({"from_step": 5, "to_step": 9}, "the rollout has 5 observations"),
        ({"from_step": 0, "to_step": 1, "method": "magic"}, "method: expected one of greydanus"),
        ({"to_step": 1}, "from_step: expected a whole number"),
    ):
        answer = balancing.client.post(path, json=body)
        assert answer.status_code == 422
        assert words in answer.json()["error"]
    body = {"from_step": 0, "to_step": 1, "actor_intensity": 5}
    answer = balancing.client.post(path, json=body)
    assert answer.status_code == 202
    job = balancing.finished(answer.json()["job"])
    assert job["status"] == "failed"
    assert "expected pictures as observations, got shape [4]" in job["message"]


def test_an_explanation_is_kept_and_given_map_by_map(balancing: Served) -> None:
    made = balancing.roll_out(12)
    balancing.finished(made["job"])
    path = f"/api/rollouts/{made['rollout_id']}"
    body = {"from_step": 2, "to_step": 4, "method": "occlusion"}
    answer = balancing.client.post(f"{path}/saliency", json=body).json()
    job = balancing.finished(answer["job"])
    assert job["status"] == "done", job["message"]
    (meta,) = balancing.get(f"{path}/explanations")["explanations"]
    assert meta["targets"] == {"actor": ["action_probs", None], "critic": ["state_value", None]}
    assert meta["shape"] == [4]
    maps = balancing.client.get(f"{path}/explanations/{meta['name']}?step=3").content
    assert len(maps) == 2 * 4 * 4
    missing = balancing.client.get(f"{path}/explanations/{meta['name']}?step=5")
    assert missing.status_code == 404
    assert balancing.client.get(f"{path}/explanations/%2e%2e?step=0").status_code == 404


def test_a_video_is_made_and_given(balancing: Served) -> None:
    made = balancing.roll_out(6)
    balancing.finished(made["job"])
    path = f"/api/rollouts/{made['rollout_id']}/export"
    answer = balancing.client.post(path, json={"format": "gif", "to_step": 3})
    assert answer.status_code == 202
    job = balancing.finished(answer.json()["job"])
    assert job["result"]["frames"] == 4, job
    video = balancing.client.get(path, params={"name": job["result"]["name"]})
    assert video.content.startswith(b"GIF89a")
    assert balancing.client.get(path, params={"name": "../x.gif"}).status_code == 422
    assert balancing.client.post(path, json={"format": "mkv"}).status_code == 422


def test_the_interface_is_described(balancing: Served) -> None:
    document = balancing.get("/api/openapi.json")
    assert document["openapi"].startswith("3.1")
    assert "post" in document["paths"]["/api/rollouts"]
    state = SimpleNamespace(pool=SimpleNamespace(listeners=[]))
    routes = {re.sub(r":\w+", "", route.path) for route in make_app(state, "", 1).app.routes}
    assert routes - document["paths"].keys() == {"/page/{name}", "/api/openapi.json"}


def test_agents_are_compared_on_the_same_seed(tmp_path: Path) -> None:
    words = [f"{AGENTS}:Balancer", f"{AGENTS}:Mute", "--env", "CartPole-v1"]
    with serving(tmp_path, *words) as served:
        made = [served.roll_out(15, seed=5, agent=agent) for agent in (0, 1)]
        for one in made:
            assert served.finished(one["job"])["status"] == "done"
        first, second = (served.lines(one["rollout_id"]) for one in made)
        assert first[0]["seed"] == second[0]["seed"] == 5
        assert "action_probs" in first[0]
        assert "action_probs" not in second[0]
        assert {line["episode"] for line in second} == {0, 1}
        path = f"/api/rollouts/{made[1]['rollout_id']}/saliency"
        body = {"from_step": 0, "to_step": 0, "method": "occlusion"}
        answer = served.client.post(path, json=body).json()
        job = served.finished(answer["job"])
        assert job["agent"] == 1
        assert "the agent shows no outputs" in job["message"]
