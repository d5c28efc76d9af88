/** The wire has empty text if there is none. */
export const toOptional = (text: string): string | undefined => (text === "" ? undefined : text);
