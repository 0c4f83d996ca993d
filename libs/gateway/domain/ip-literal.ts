const OCTET = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

/** A dotted quad in plain decimal form; `127.1`, `0x7f.1` and the like are not. */
export const isIPv4 = (text: string): boolean => IPV4.test(text);

/** An IPv6 literal without brackets or zone. */
export const isIPv6 = (text: string): boolean =>
  /^[0-9a-fA-F:]{2,39}$/.test(text) &&
  (text.match(/::/g)?.length ?? 0) <= 1 &&
  !text.includes(':::') &&
  (text.includes('::') ? text.split(':').length <= 8 : text.split(':').length === 8) &&
  text.split(':').every((group) => group.length <= 4);
