// Entry point of the player's widget.

import { liveWidget } from "../../_shared/mount.js";
import { buildPlayer, PLAYER_KEYS } from "./controls.js";
import { PlayerView } from "./view.js";

/** @param {{model: any, el: HTMLElement}} place */
function renderPlayer({ model, el }) {
  const view = new PlayerView(model, buildPlayer(el, "speechlab-player", PLAYER_KEYS)).begin();
  return () => view.dispose();
}

export default liveWidget(renderPlayer);
