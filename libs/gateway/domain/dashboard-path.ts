/** First parts of paths that programs use. The dashboard's pages never have one of them. */
const PROGRAM_PATHS: ReadonlySet<string> = new Set([
  ...['api', 'v1', 'ws', 'mcp', 'a2a', 'openclaw', 'webhook', 'docs', 'assets', 'csp-report'],
  ...['healthz', 'readyz', 'metrics', 'openapi.json', 'asyncapi.json', '.well-known'],
]);

const decodePart = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
};

/** Returns true for a decoded part of a path that has one reading only. */
const isPlainPart = (part: string): boolean =>
  part !== '' && !/[\p{Cc}/\\]/u.test(part) && !/^\.{1,2}(?:;|$)/.test(part);

/**
 * Returns true for a path that may be a page of the dashboard. Paths of programs are none, in any
 * case of their letters, and neither are paths that two servers could read in different ways.
 */
export const isDashboardPage = (path: string): boolean => {
  if (path === '/') return true;
  if (!path.startsWith('/')) return false;
  const parts = path.slice(1).replace(/\/$/, '').split('/').map(decodePart);
  if (!parts.every((part) => part !== undefined && isPlainPart(part))) return false;
  return !PROGRAM_PATHS.has(parts[0]?.toLowerCase() ?? '');
};
