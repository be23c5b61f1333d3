// Entry point of the player's widget.

import { liveWidget } from "../../_shared/mount.js";
import { PLAYER_KEYS } from "./controls.js";
import { PlayerView } from "./view.js";

export default liveWidget((model, el) => new PlayerView(model, el, "speechlab-player", PLAYER_KEYS).begin());
