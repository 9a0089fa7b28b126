from __future__ import annotations

import os
from pathlib import Path

import pytest

from hagane.tools.rl.errors import NoSuchRollout, RlError
from hagane.tools.rl.logs.folder import LogFolder, made_within, open_regular


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "log")


def test_a_new_rollout_has_a_folder_for_pictures_and_is_the_latest(folder: LogFolder) -> None:
    first, second = folder.new(), folder.new()
    assert (first / "images").is_dir()
    assert folder.ids() == [first.name, second.name]
    assert folder.latest() == second.name


def test_names_of_another_kind_are_listed_and_never_the_latest(folder: LogFolder) -> None:
    made = folder.new()
    (folder.rollouts / "zebra").mkdir()
    (folder.rollouts / ".hidden").mkdir()
    (folder.rollouts / "file").write_text("")
    assert folder.ids() == [made.name, "zebra"]
    assert folder.latest() == made.name


def test_an_empty_folder_has_no_latest_rollout(folder: LogFolder) -> None:
    assert folder.latest() is None


@pytest.mark.parametrize("name", ["..", "a/b", "", ".", "x" * 65, "a\0b", "../log"])
def test_no_rollout_has_a_name_that_leads_elsewhere(folder: LogFolder, name: str) -> None:
    with pytest.raises(NoSuchRollout, match="there is none"):
        folder.rollout(name)


def test_a_link_to_a_folder_is_no_rollout(folder: LogFolder, tmp_path: Path) -> None:
    (tmp_path / "other" / "images").mkdir(parents=True)
    (folder.rollouts / "linked").symlink_to(tmp_path / "other")
    assert folder.ids() == []
    with pytest.raises(NoSuchRollout):
        folder.rollout("linked")


def test_pictures_are_found_by_their_path_wherever_the_log_was_written(folder: LogFolder) -> None:
    made = folder.new()
    picture = made / "images" / "a.png"
    picture.write_bytes(b"picture")
    for text in (
        str(picture),
        f"rollouts/{made.name}/images/a.png",
        f"/home/x/log/rollouts/{made.name}/images/a.png",
    ):
        assert folder.picture(text) == (picture, "image/png")
    beside = folder.root / "beside.gif"
    beside.write_bytes(b"picture")
    assert folder.picture(str(beside)) == (beside, "image/gif")


def test_nothing_but_pictures_of_rollouts_is_served(folder: LogFolder, tmp_path: Path) -> None:
    made = folder.new()
    images = made / "images"
    (tmp_path / "secret.png").write_bytes(b"secret")
    (images / "out.png").symlink_to(tmp_path / "secret.png")
    (images / "up").symlink_to(tmp_path)
    (made / "rollout_log.jsonl").write_text("{}")
    (folder.rollouts / "loose.png").write_bytes(b"loose")
    (images / "loop.png").symlink_to(images / "loop.png")
    os.mkfifo(images / "pipe.png")
    within = f"rollouts/{made.name}"
    for text in (
        str(tmp_path / "secret.png"),
        "/etc/passwd",
        f"{within}/images/out.png",
        f"{within}/images/up/secret.png",
        f"{within}/images/../../../../secret.png",
        f"{within}/rollout_log.jsonl",
        f"{within}/images",
        f"{within}/images/none.png",
        f"{within}/images/loop.png",
        f"{within}/images/pipe.png",
        "rollouts/loose.png",
        "rollouts",
        "",
        "a\0.png",
        "x" * 9000 + ".png",
    ):
        with pytest.raises(NoSuchRollout, match="picture"):
            folder.picture(text)


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none"):
        with pytest.raises(NoSuchRollout, match=f"{name}: cannot be read"):
            open_regular(tmp_path / name)


def test_a_file_cannot_be_the_log_folder(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    with pytest.raises(RlError, match="cannot be made"):
        LogFolder(tmp_path / "log")


def test_nothing_is_written_through_a_link(folder: LogFolder, tmp_path: Path) -> None:
    made = folder.new()
    assert made_within(made, "exports") == made_within(made, "exports") == made / "exports"
    (made / "explanations").symlink_to(tmp_path)
    with pytest.raises(NoSuchRollout, match="explanations is a link or a file"):
        made_within(made, "explanations")
