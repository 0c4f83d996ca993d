import { readFileSync } from 'node:fs';

interface NetLog {
  readonly constants: { readonly logEventTypes: Readonly<Record<string, number>> };
  readonly events: readonly { readonly type: number; readonly params?: { readonly host?: unknown } }[];
}

/** Reads a log of Chromium, which may lack its end while the browser runs. */
const parse = (text: string): NetLog => {
  const trimmed = text.trimEnd().replace(/,$/, '');
  return JSON.parse(
    trimmed.endsWith('}') && /\]\s*(,|\})/.test(trimmed.slice(-400)) ? trimmed : `${trimmed}]}`,
  ) as NetLog;
};

/** Returns the names that the network service of Chromium looked up, from its `--log-net-log`. */
export const namesLookedUp = (path: string): string[] => {
  const { constants, events } = parse(readFileSync(path, 'utf8'));
  const types = new Set(
    Object.entries(constants.logEventTypes)
      .filter(([name]) => name.startsWith('HOST_RESOLVER'))
      .map(([, type]) => type),
  );
  const hosts = events.filter(({ type }) => types.has(type)).map(({ params }) => params?.host);
  return [...new Set(hosts.filter((host): host is string => typeof host === 'string'))];
};
