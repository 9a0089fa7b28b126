"""The C of a build beside its kernels: their functions in the plan's order, and its record."""

from __future__ import annotations

from collections.abc import Sequence


def c_string(text: str) -> str:
    """Return a C string literal of a text."""
    parts = []
    for byte in text.encode("utf-8", "surrogatepass"):
        plain = 32 <= byte < 127 and byte not in b'"\\?'
        parts.append(chr(byte) if plain else f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


def functions_text(names: Sequence[str]) -> str:
    """Return the declarations of C functions of kernels, and the array of them."""
    arguments = "char *const *, const int64_t *, int64_t, const hg_thread *"
    declared = "".join(f"void {name}({arguments});\n" for name in names)
    listed = ",\n  ".join(names) or "0"
    return f"{declared}static const hg_kernel functions[] = {{\n  {listed}\n}};\n"


def built_text(build: str, plan_bytes: int, weight_bytes: int, *, embedded: bool) -> str:
    """Return the record that stands for a whole build, and that others find by its name.

    Args:
        build: Its name.
        plan_bytes: The bytes of its plan.
        weight_bytes: The bytes of its weights.
        embedded: Whether these are in the library.
    """
    hidden = '__attribute__((visibility("hidden")))'
    content = "hgb_weights" if embedded else "0"
    return (
        f"extern const char hgb_weights[] {hidden};\n"
        f"extern const char hgb_plan[] {hidden};\n"
        # (The name is that of another archive's where a program has several.)
        "static const hgb_built own_build = {\n"
        f"  PLAN_FORMAT, {c_string(build)}, hgb_plan, {plan_bytes}L, functions, {content}, "
        f"{weight_bytes}L}};\n"
        'extern const hgb_built hagane_built __attribute__((visibility("default"), '
        'alias("own_build")));\n'
        "static hgb_archive own_archive = {&own_build, 0};\n"
        "__attribute__((constructor)) static void register_own(void) {\n"
        "  hgb_register(&own_archive);\n}\n"
    )
