// Entry point of the segment editor's widget.

import { liveWidget } from "../../_shared/mount.js";
import { PLAYER_KEYS } from "../../_player/browser/controls.js";
import { EditorView } from "./view.js";

const EDIT_KEYS = [
  ["[ ]", "start, end of the segment here"],
  ["Shift ← →", "move the segment"],
  ["c", "split here"],
  ["m", "merge with the next"],
  ["a", "add the selection, or here"],
  ["Delete", "delete the segment"],
  ["e", "edit its text; Enter, Escape end it"],
  ["Enter", "play the segment"],
  ["1 2", "play around its start, its end"],
  ["z", "show it large"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
  ["↑ ↓ in the list", "choose another one"],
  ["Alt while dragging", "hold on to nothing"],
  ["Escape", "choose none"],
];

const replaced = new Set([...EDIT_KEYS.map(([key]) => key), "1 2 …"]);
const ALL_KEYS = [...EDIT_KEYS, ...PLAYER_KEYS.filter(([key]) => !replaced.has(key))];

export default liveWidget((model, el) => new EditorView(model, el, "speechlab-player speechlab-editor", ALL_KEYS).begin());
