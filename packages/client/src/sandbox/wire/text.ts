/** The wire has empty text where there is none. */
export const toOptional = (text: string): string | undefined => (text === "" ? undefined : text);
