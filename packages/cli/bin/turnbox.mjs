#!/usr/bin/env node
import { statSync } from "node:fs";

/** When a file was written; 0 where there is none. */
const writtenMs = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

// One file starts in half the time of three hundred. One that is older than what it was made from is left alone.
const BUNDLE = "../bundle/turnbox.mjs";
const compiled = ["..", "../../agents", "../../client", "../../core", "../../protocol"].map((folder) =>
  writtenMs(`${folder}/tsconfig.tsbuildinfo`),
);
const bundleMs = writtenMs(BUNDLE);
await import(bundleMs > 0 && compiled.every((ms) => ms <= bundleMs) ? BUNDLE : "../dist/main.js");
