import { ROOMS } from "../lint/rooms.mjs";
import { readHouse } from "./map-imports.mjs";
import { drawHouse } from "./map-picture.mjs";
import { readSources } from "./sources.mjs";

/** The picture of the packages and rooms, by its path below the root. */
export const MAP = "docs/img/house.svg";

/** The map of the repository at `root`, as the text of an SVG. */
export const drawMap = (root) => drawHouse(readHouse(readSources(root), ROOMS));
