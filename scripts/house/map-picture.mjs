/** Where the packages stand: columns beside one another, from the top to the bottom, and below them what all are built on. */
const COLUMNS = [["cli"], ["agents", "client"], ["orchestrator"], ["sandbox-host"]];
const BASE = ["rpc", "core", "protocol"];

const MARGIN = 24;
/** Between packages, where their arrows run. */
const GUTTER = 48;
const PADDING = 18;
const TITLE = 40;
const BOX = { height: 28, pitch: 68, gap: 40, perLetter: 7.6, sides: 18 };
/** What a box of files beside the rooms names, before it says that there are more. */
const MOST_LETTERS = 30;
const LANE = 16;

const labelOf = ({ id, files }) => {
  if (files.length === 0) return id;
  const named = files.filter((_, index) => files.slice(0, index + 1).join(", ").length <= MOST_LETTERS);
  return [...named, ...(named.length < files.length ? ["…"] : [])].join(", ");
};

const widthOf = (box) => Math.round(labelOf(box).length * BOX.perLetter) + BOX.sides;
const rowWidth = (row) => row.reduce((sum, box) => sum + widthOf(box) + BOX.gap, -BOX.gap);

/** The size of a package as wide as its longest row. */
function sizeOf({ name, rows }) {
  const width = Math.max(name.length * 11, 110, ...rows.map(rowWidth)) + 2 * PADDING;
  const height = TITLE + (rows.length === 0 ? 0 : (rows.length - 1) * BOX.pitch + BOX.height + PADDING);
  return { width, height };
}

/** The middle between those above and below that a box has an arrow with; its own middle without one. */
function middleOf(id, arrows, boxes) {
  const others = arrows
    .filter(({ implied }) => !implied)
    .flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : []))
    .map((other) => boxes.get(other).x + boxes.get(other).width / 2);
  const { x, width } = boxes.get(id);
  return others.length === 0 ? x + width / 2 : others.reduce((sum, one) => sum + one, 0) / others.length;
}

function spreadRow(row, { x, width }, y) {
  const space = (width - 2 * PADDING - row.reduce((sum, box) => sum + widthOf(box), 0)) / row.length;
  let left = x + PADDING + space / 2;
  return row.map((box) => {
    const placed = [
      box.id,
      {
        x: Math.round(left),
        y,
        width: widthOf(box),
        height: BOX.height,
        label: labelOf(box),
        isFiles: box.files.length > 0,
      },
    ];
    left += widthOf(box) + space;
    return placed;
  });
}

/** The boxes of a package by id. Each row is put into the order of what its boxes are joined with, so that few arrows cross. */
function placeBoxes({ rows, arrows }, area) {
  const yOf = (index) => area.y + TITLE + index * BOX.pitch;
  const orders = rows.map((row) => [...row]);
  let boxes = new Map();
  const place = () => new Map(orders.flatMap((row, index) => spreadRow(row, area, yOf(index))));
  boxes = place();
  for (let round = 0; round < 8; round += 1) {
    for (const row of orders) {
      const middles = new Map(row.map(({ id }) => [id, middleOf(id, arrows, boxes)]));
      row.sort((a, b) => middles.get(a.id) - middles.get(b.id) || (a.id < b.id ? -1 : 1));
      boxes = place();
    }
  }
  return boxes;
}

/** Puts the packages into columns with the base below; a package that has no position is an error of this file. */
function placePackages(packages) {
  const known = new Map(packages.map((one) => [one.name, { ...one, ...sizeOf(one) }]));
  const lost = [...known.keys()].filter((name) => ![...COLUMNS.flat(), ...BASE].includes(name));
  if (lost.length > 0) throw new Error(`the map has no position for ${lost.join(", ")}: scripts/house/map-picture.mjs`);
  const present = (names) => names.filter((name) => known.has(name)).map((name) => known.get(name));
  const areas = new Map();
  const columns = COLUMNS.map(present).filter((column) => column.length > 0);
  const heightOf = (column) => column.reduce((sum, one) => sum + one.height + GUTTER, -GUTTER);
  const bottom = MARGIN + Math.max(...columns.map(heightOf));
  let x = MARGIN;
  for (const column of columns) {
    const width = Math.max(...column.map((one) => one.width));
    let y = MARGIN;
    for (const one of column) {
      const height = one === column.at(-1) ? bottom - y : one.height;
      areas.set(one.name, { ...one, x, y, width, height });
      y += height + GUTTER;
    }
    x += width + GUTTER;
  }
  const width = x - GUTTER + MARGIN;
  const base = present(BASE);
  const wide = base.reduce((sum, one) => sum + one.width + GUTTER, -GUTTER);
  const growing = base.filter(({ rows }) => rows.length > 0);
  const extra = Math.max(0, Math.floor((width - 2 * MARGIN - wide) / Math.max(1, growing.length)));
  const top = bottom + LANE * (base.length + 2);
  const height = Math.max(0, ...base.map((one) => one.height));
  x = MARGIN;
  for (const one of base) {
    const ownWidth = one.width + (growing.includes(one) ? extra : 0);
    areas.set(one.name, { ...one, x, y: top, width: ownWidth, height });
    x += ownWidth + GUTTER;
  }
  return { areas, width: Math.max(width, x - GUTTER + MARGIN), height: top + height + MARGIN, busTop: bottom };
}

const colours = { rpc: "#8a5a00", core: "#1d4ed8", protocol: "#6b7280" };

function arrowPath({ from, to, index, count }, { areas, busTop }) {
  const [a, b] = [areas.get(from), areas.get(to)];
  const lane = BASE.indexOf(to);
  const isBase = (name) => BASE.includes(name);
  const share = (area) => Math.round(area.x + (area.width * (index + 1)) / (count + 1));
  if (lane >= 0 && !isBase(from)) {
    const [x, y] = [share(a), busTop + LANE * (lane + 1)];
    const end = Math.round(b.x + b.width / 2);
    return `M${x} ${a.y + a.height}V${y}H${end}V${b.y}`;
  }
  if (lane >= 0) {
    const isNext = BASE.indexOf(to) === BASE.indexOf(from) + 1;
    const y = a.y + 20;
    return isNext
      ? `M${a.x + a.width} ${y}H${b.x}`
      : `M${a.x + a.width - 20} ${a.y}V${busTop + LANE * (lane + 1)}H${Math.round(b.x + b.width / 2)}V${b.y}`;
  }
  if (a.x === b.x) return `M${Math.round(a.x + a.width / 2)} ${a.y + a.height}V${b.y}`;
  const y = Math.max(a.y, b.y) + 20;
  return a.x < b.x ? `M${a.x + a.width} ${y}H${b.x}` : `M${a.x} ${y}H${b.x + b.width}`;
}

function drawPackageArrows(arrows, placed) {
  const bySource = Object.groupBy(arrows, ({ from }) => from);
  return Object.values(bySource)
    .flatMap((group) => group.map((arrow, index) => ({ ...arrow, index, count: group.length })))
    .map(({ from, to, ...more }) => {
      const colour = colours[to] ?? "#111827";
      const d = arrowPath({ from, to, ...more }, placed);
      return `<path class="between" stroke="${colour}" d="${d}" marker-end="url(#to-${colours[to] === undefined ? "package" : to})"><title>${from} imports ${to}</title></path>`;
    });
}

/** Where the arrows of a box leave or arrive, spread over its side in the order of their other ends. */
function portsOf(arrows, boxes, { own, other }) {
  const ports = new Map();
  const groups = Object.groupBy(arrows, (arrow) => arrow[own]);
  for (const [id, group] of Object.entries(groups)) {
    const middle = (arrow) => boxes.get(arrow[other]).x + boxes.get(arrow[other]).width / 2;
    const sorted = group.toSorted((a, b) => middle(a) - middle(b));
    const { x, width } = boxes.get(id);
    sorted.forEach((arrow, index) =>
      ports.set(arrow, Math.round(x + 8 + ((width - 16) * (index + 1)) / (sorted.length + 1))),
    );
  }
  return ports;
}

function drawRoomArrows(arrows, boxes) {
  const [leaving, arriving] = [
    portsOf(arrows, boxes, { own: "from", other: "to" }),
    portsOf(arrows, boxes, { own: "to", other: "from" }),
  ];
  const draw = (arrow) => {
    const [a, b] = [boxes.get(arrow.from), boxes.get(arrow.to)];
    const [x1, x2] = [leaving.get(arrow), arriving.get(arrow)];
    const [y1, y2] = a.y === b.y ? [a.y + a.height, b.y + b.height] : [a.y + a.height, b.y];
    const bend = a.y === b.y ? 24 : Math.min(60, Math.max(20, Math.round((y2 - y1) / 2)));
    const d =
      a.y === b.y
        ? `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 + bend} ${x2} ${y2}`
        : `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
    const kind = arrow.implied ? "implied" : "direct";
    return `<path class="${kind}" d="${d}" marker-end="url(#to-${kind})"><title>${a.label} imports ${b.label}</title></path>`;
  };
  return [...arrows.filter(({ implied }) => implied), ...arrows.filter(({ implied }) => !implied)].map(draw);
}

const drawBox = ({ x, y, width, height, label, isFiles }) =>
  `<g class="${isFiles ? "files" : "room"}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="5"/>` +
  `<text x="${x + width / 2}" y="${y + 19}">${label}</text></g>`;

function drawPackage(area) {
  const boxes = placeBoxes(area, area);
  const { x, y, width, height, name } = area;
  return [
    `<g id="${name}"><rect class="package" x="${x}" y="${y}" width="${width}" height="${height}" rx="10"/>`,
    `<text class="title" x="${x + 14}" y="${y + 26}">${name}</text>`,
    ...drawRoomArrows(area.arrows, boxes),
    ...[...boxes.values()].map(drawBox),
    "</g>",
  ];
}

const STYLE = `text { font: 14px "DejaVu Sans", Verdana, sans-serif; text-anchor: middle; fill: #111827 }
.title { font-weight: bold; font-size: 17px; text-anchor: start }
.package { fill: #f8fafc; stroke: #64748b; stroke-width: 1.5 }
.room rect { fill: #dbeafe; stroke: #1e40af }
.files rect { fill: #fef3c7; stroke: #b45309 }
.files text { font-style: italic; font-size: 13px }
path { fill: none }
.direct { stroke: #1f2937; stroke-width: 1.4 }
.implied { stroke: #cbd5e1; stroke-width: 1 }
.between { stroke-width: 2.5 }
.legend { text-anchor: start; font-size: 13px; fill: #374151 }`;

const marker = (id, colour, size) =>
  `<marker id="to-${id}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="${size}" markerHeight="${size}" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:${colour}"/></marker>`;

const LEGEND =
  "An arrow is an import, of values or types: dark if nothing else leads there, pale if it follows from the others. " +
  "Blue: rooms. Yellow: files beside the rooms. Drawn by npm run map.";

/** The map as an SVG: the same text for the same house. */
export function drawHouse(house) {
  const placed = placePackages(house.packages);
  const { areas, width, height } = placed;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 20}" width="${width}" height="${height + 20}">`,
    `<style>\n${STYLE}\n</style>`,
    `<defs>${[
      marker("direct", "#1f2937", 8),
      marker("implied", "#cbd5e1", 7),
      marker("package", "#111827", 13),
      ...Object.entries(colours).map(([name, colour]) => marker(name, colour, 13)),
    ].join("")}</defs>`,
    '<rect width="100%" height="100%" fill="#ffffff"/>',
    ...[...areas.values()].flatMap(drawPackage),
    ...drawPackageArrows(house.arrows, placed),
    `<text class="legend" x="${MARGIN}" y="${height + 6}">${LEGEND}</text>`,
    "</svg>",
  ].join("\n")}\n`;
}
