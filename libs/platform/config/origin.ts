/**
 * Returns true for the origin of a web page, exactly as browsers send it. A wildcard, `null`, a
 * path, a user name, upper case and a default port are refused: no browser sends them.
 */
export const isOrigin = (text: string): boolean => {
  if (!/^https?:\/\/[^*]+$/.test(text) || !URL.canParse(text)) return false;
  return new URL(text).origin === text;
};
