import { b } from "./b.ts";
export const a = (): unknown => b;
