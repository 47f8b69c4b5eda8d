"""The scene of a virtual camera: the faces of everything that it may see."""

from understudy.devices.camera.visible import VisibleBody, VisibleCell
from understudy.errors import ConfigError
from understudy.sight.face_set import (
    ROBOT_SIDES,
    SIDES,
    FaceSet,
    face_set,
    joined,
    shape_faces,
    top_of,
)
from understudy.sight.faces import Color, marker_face
from understudy.space.model.appearance import Appearance, BoardConfig, MarkerConfig
from understudy.space.model.shapes import CollisionObject
from understudy.space.transform import translation


def color_of(name: str) -> Color:
    """`#d9822b` → red, green and blue."""
    return int(name[1:3], 16), int(name[3:5], 16), int(name[5:7], 16)


class CameraScene:
    """The faces of a cell; those of the environment are kept until it changes."""

    def __init__(self, cell: VisibleCell, object_color: Color, robot_color: Color) -> None:
        self._cell = cell
        self._object_color = object_color
        self._robot_color = robot_color
        self._around: tuple[tuple[CollisionObject, ...], FaceSet] | None = None
        self._sheets: dict[MarkerConfig | BoardConfig, FaceSet | None] = {}
        self._started = False
        for thing in cell.objects():
            self._sheet(thing.look)
        for body in cell.bodies(0):
            self._sheet(body.look)
        self._started = True

    def faces(self, now: int) -> FaceSet:
        bodies = [self._body(body) for body in self._cell.bodies(now)]
        return joined([self._environment(), *bodies])

    def _environment(self) -> FaceSet:
        objects = self._cell.objects()
        if self._around is None or self._around[0] is not objects:
            found = [self._body(VisibleBody(o.shape, o.place, o.look)) for o in objects]
            self._around = objects, joined(found)
        return self._around[1]

    def _body(self, body: VisibleBody) -> FaceSet:
        color = self._robot_color if body.robot else self._object_color
        color = color_of(body.look.color) if body.look.color else color
        sides = ROBOT_SIDES if body.robot else SIDES
        faces, sheet = shape_faces(body.shape, color, sides), self._sheet(body.look)
        if sheet is not None:
            faces = joined([faces, sheet.moved(translation(0.0, 0.0, top_of(body.shape)))])
        return faces.moved(body.place)

    def _sheet(self, look: Appearance) -> FaceSet | None:
        """The marker or board on an object, about the origin."""
        printed = look.marker or look.board
        if printed is None:
            return None
        if printed not in self._sheets:
            try:
                self._sheets[printed] = _printed(printed)
            except ConfigError:
                if self._started:
                    self._sheets[printed] = None  # of a part that was added to the running cell
                else:
                    raise
        return self._sheets[printed]


def _printed(printed: MarkerConfig | BoardConfig) -> FaceSet | None:
    """None without OpenCV: a cell runs without it, only its vision process does not."""
    try:
        from understudy.sight import markers
    except ImportError:
        return None
    if isinstance(printed, MarkerConfig):
        side = markers.paper_size(printed.dictionary, printed.size)
        pattern = markers.marker_pattern(printed.dictionary, printed.id)
        return face_set([marker_face(pattern, side, side)])
    size = printed.columns, printed.rows, printed.square
    board = (
        markers.Charuco(*size, printed.dictionary)
        if printed.type == "charuco"
        else markers.Chessboard(*size)
    )
    return face_set([marker_face(board.pattern(), board.width, board.height)])
