/**
 * Checks the address of a socket that a platform named. It must be of the platform's domain and
 * encrypted, so that its certificate proves the host. Or it is of the host that the operator's file
 * names. Throws for any other one.
 */
export const checkSocketUrl = (text: string, hosts: readonly string[], baseUrl: string | null): URL => {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '')
    throw new Error('the platform named no address of a socket');
  if (baseUrl !== null) {
    const own = new URL(baseUrl);
    const isSecure = url.protocol === 'wss:' || (url.protocol === 'ws:' && own.protocol === 'http:');
    if (isSecure && url.hostname === own.hostname) return url;
  } else if (url.protocol === 'wss:' && (url.port === '' || url.port === '443')) {
    if (hosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`))) return url;
  }
  throw new Error(`the platform named a socket at ${url.host.slice(0, 100)}, which is not its own`);
};
