"""A kind's class gives one description; a class that cannot be served is refused with a text that says what to change."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest

from apiserver.meta.condition import Condition
from apiserver.meta.markers import ListMap
from apiserver.meta.object_meta import ObjectMeta
from apiserver.meta.quantity import Quantity
from apiserver.meta.resource import Column, Int32, Model, Resource, ScalePaths, describe
from openapi.from_model import schema_of
from openapi.structural import ABSENT


class WidgetSpec(Model):
    """What is wanted."""

    size: Int32 = 3
    color: str | None = None
    limits: dict[str, Quantity] | None = None


class WidgetStatus(Model):
    """What is observed."""

    size: Int32 | None = None
    conditions: Annotated[list[Condition] | None, ListMap("type")] = None


class Widget(Resource):
    """A thing."""

    group: ClassVar[str] = "example.com"
    version: ClassVar[str] = "v1beta2"
    plural: ClassVar[str] = "widgets"
    short_names: ClassVar[tuple[str, ...]] = ("wd",)
    columns: ClassVar[tuple[Column, ...]] = (Column("Size", "integer", ".spec.size"),)
    scale: ClassVar[ScalePaths | None] = ScalePaths(".spec.size", ".status.size", lambda widget: f"widget={widget['metadata']['name']}")
    selectable_fields: ClassVar[tuple[str, ...]] = (".spec.color",)

    spec: WidgetSpec
    status: WidgetStatus | None = None


class Gadget(Resource):
    """Another thing, of the whole cluster."""

    group: ClassVar[str] = "example.com"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "gadgetry"
    singular: ClassVar[str] = "gadget"
    list_kind: ClassVar[str] = "Gadgetry"
    scope: ClassVar[Any] = "Cluster"
    categories: ClassVar[tuple[str, ...]] = ("all",)


def test_names_follow_from_the_class_unless_they_are_given() -> None:
    widget, gadget = describe(Widget), describe(Gadget)
    assert (widget.kind, widget.list_kind, widget.singular, widget.plural) == ("Widget", "WidgetList", "widget", "widgets")
    assert (gadget.kind, gadget.list_kind, gadget.singular, gadget.plural) == ("Gadget", "Gadgetry", "gadget", "gadgetry")
    assert (widget.namespaced, gadget.namespaced) == (True, False)
    assert (widget.api_version, str(widget.group_resource)) == ("example.com/v1beta2", "widgets.example.com")
    assert (widget.short_names, gadget.categories) == (("wd",), ("all",))


def test_a_status_field_makes_the_status_subresource() -> None:
    assert describe(Widget).has_status
    assert not describe(Gadget).has_status


def test_the_schema_is_that_of_the_whole_object() -> None:
    schema = describe(Widget).schema
    assert list(schema.properties) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema.required == ("spec",)
    assert schema.description == "A thing."
    assert schema.properties["metadata"].properties == schema_of(ObjectMeta).properties


def test_nothing_but_the_kind_s_own_fields_has_a_default() -> None:
    schema = describe(Widget).schema
    assert {name for name, value in schema.properties.items() if value.default is not ABSENT} == set()
    assert schema.properties["spec"].properties["size"].default == 3


def test_a_table_without_columns_of_its_own_shows_the_age() -> None:
    assert [column.name for column in describe(Gadget).columns] == ["Age"]


def test_the_selector_of_a_scale_is_made_from_the_object() -> None:
    scale = describe(Widget).scale
    assert scale is not None
    assert scale.selector is not None
    assert scale.selector({"metadata": {"name": "a"}}) == "widget=a"


def test_what_the_documents_need_is_handed_on() -> None:
    published = describe(Widget).published
    assert (published.has_status, published.has_scale, published.selectable_fields) == (True, True, (".spec.color",))


def test_an_object_is_read_by_its_names_on_the_wire() -> None:
    widget = Widget.model_validate(
        {
            "apiVersion": "example.com/v1beta2",
            "kind": "Widget",
            "metadata": {"name": "a", "generateName": "b"},
            "spec": {"limits": {"cpu": 1}},
        }
    )
    assert (widget.metadata.name, widget.metadata.generate_name, widget.spec.size, widget.spec.limits) == ("a", "b", 3, {"cpu": 1})
    assert list(widget.validate_object(None)) == []
    assert list(widget.warn(None)) == []


def widget(**changes: Any) -> type[Resource]:
    """A kind like Widget in which the given class variables are other ones."""
    return type("Widget", (Widget,), {"__module__": __name__, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"group": "example"}, "Widget: the class variable group"),
        ({"group": "Example.com"}, "Widget: the class variable group"),
        ({"version": "1"}, "Widget: the class variable version"),
        ({"plural": "Widgets"}, "Widget: the class variable plural"),
        ({"scope": "Everywhere"}, "Widget: scope must be"),
        ({"columns": (Column("Size", "integer", "spec.size"),)}, "Widget: the path of column Size must begin with a dot"),
        ({"scale": ScalePaths(".spec.nope", ".status.size")}, "Widget: there is no field .spec.nope"),
        ({"scale": ScalePaths(".spec.color", ".status.size")}, "Widget: the scale path .spec.color must lead to an integer"),
        ({"scale": ScalePaths(".spec.size", ".spec.size")}, "Widget: the scale path .spec.size must lead to an integer below .status"),
        ({"selectable_fields": (".spec.limits",)}, "Widget: the selectable field .spec.limits must be a string"),
        ({"selectable_fields": (".spec.nope",)}, "Widget: there is no field .spec.nope"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_kind_that_cannot_be_served_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text.replace(".", r"\.")):
        describe(widget(**changes))


def test_a_kind_without_a_group_is_refused() -> None:
    class Orphan(Resource):
        version: ClassVar[str] = "v1"
        plural: ClassVar[str] = "orphans"

    with pytest.raises(TypeError, match="Orphan: the class variable group"):
        describe(Orphan)


def test_the_name_of_the_class_is_in_camel_case() -> None:
    with pytest.raises(TypeError, match="CamelCase"):
        describe(type("widget", (Widget,), {"__module__": __name__}))


def test_metadata_cannot_be_declared_anew() -> None:
    class Own(Widget):
        metadata: ObjectMeta

    with pytest.raises(TypeError, match="Own: metadata cannot be declared anew"):
        describe(Own)
