"""Values of the fields of a detector, as the form reads them."""

import math
from typing import Any

import pytest

from understudy.vision.page.camera import FieldError, field_value

SIZE = {"name": "size_mm", "type": "number", "allowed": "a number > 0", "default": 50.0}
COUNT = {"name": "count", "type": "whole", "allowed": "a whole number", "default": 3}
CLASSES = {"name": "classes", "type": "value", "allowed": "a list", "default": None}
NAME = {"name": "name", "type": "text", "allowed": "a text", "default": ""}


@pytest.mark.parametrize(
    ("field", "table", "shown", "value"),
    [
        (SIZE, {"size_mm": 30}, 31.5, 31.5),
        (SIZE, {"size_mm": 30}, 0, 0),
        (COUNT, {}, 5.0, 5),
        (COUNT, {}, 5.5, 5.5),  # the cell refuses it
        (CLASSES, {}, "", None),
        (CLASSES, {"classes": [1]}, "[1.5, 2]", [1.5, 2]),
        (NAME, {}, "", ""),
    ],
)
def test_value_of_a_field(field: Any, table: Any, shown: Any, value: Any) -> None:
    assert field_value(field, table, shown) == value


@pytest.mark.parametrize(
    ("field", "table", "shown", "problem"),
    [
        (SIZE, {"size_mm": 30}, None, "empty"),
        (SIZE, {}, None, "empty"),
        (COUNT, {"count": 4}, None, "empty"),
        (CLASSES, {"classes": [1]}, "", "empty"),
        (NAME, {"name": "cube"}, "", "empty"),
        (SIZE, {"size_mm": 30}, math.inf, "not_finite"),
        (COUNT, {"count": 4}, -math.inf, "not_finite"),
        (SIZE, {"size_mm": 30}, math.nan, "not_finite"),
        (CLASSES, {"classes": [1]}, "[1e999]", "not_finite"),
        (CLASSES, {"classes": [1]}, "[NaN]", "not_finite"),
        (CLASSES, {"classes": [1]}, "[{", "bad_json"),
    ],
)
def test_wrong_field(field: Any, table: Any, shown: Any, problem: str) -> None:
    with pytest.raises(FieldError) as wrong:
        field_value(field, table, shown)
    assert wrong.value.text == problem
