"""Saving and loading of components: what a component keeps is one struct.

A component has the attribute `state`, a msgspec struct of all that must be in a snapshot; it reads
and changes it in place. `saved` and `load` write and read it by its type alone. After loading,
`restored()` is called if the component has it: it checks what no type can say, and rebuilds what
follows from the state. A component that has others inside keeps their structs in its own.

A component whose state is not one struct (arrays of many robots, the plan of a motion) has `save`
and `load` of its own. A component with neither has nothing to save.
"""

from typing import Any, Protocol, runtime_checkable

import msgspec


@runtime_checkable
class SavesItself(Protocol):
    """A component that turns its state into plain values by itself."""

    def save(self) -> Any: ...

    def load(self, state: Any) -> None: ...


@runtime_checkable
class KeepsState(Protocol):
    """A component with one struct for all that it keeps."""

    state: Any


@runtime_checkable
class Restored(Protocol):
    """Acts on a state that was loaded. For one that cannot occur it raises `ValueError`, before it
    changes anything: the component then keeps the state that it had."""

    def restored(self) -> None: ...


def saved(component: object) -> Any:
    """The state as plain values, which share nothing with the component."""
    if isinstance(component, SavesItself):
        return msgspec.to_builtins(component.save())
    return msgspec.to_builtins(component.state) if isinstance(component, KeepsState) else None


def load(component: object, state: Any) -> None:
    """Replaces the state; raises for one that is not of the component's type."""
    if isinstance(component, SavesItself):
        component.load(state)
    elif isinstance(component, KeepsState):
        before = component.state
        component.state = msgspec.convert(state, type(before), str_keys=True)
        if isinstance(component, Restored):
            try:
                component.restored()
            except ValueError:
                component.state = before
                raise
    elif state is not None:
        raise msgspec.ValidationError("it keeps nothing, so its state is null")
