import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chooseProxy, parseProxy, secretsOfProxy } from '@antiphon/config';
import type { ProviderConfig } from '@antiphon/config';
import { baseUrlOf, type Environment } from './provider-settings.js';
import type { Route } from '../transport/connections.js';

const PEM =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]+-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

/** Reads the certificates of `ca_file`. Returns why it cannot be used instead. */
const readCertificates = (path: string): { ca: string } | { problem: string } => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return { problem: `ca_file ${path} cannot be read (${String((error as NodeJS.ErrnoException).code)})` };
  }
  const found = text.match(PEM) ?? [];
  try {
    for (const pem of found) new X509Certificate(pem);
  } catch {
    return { problem: `ca_file ${path} holds a certificate that cannot be read` };
  }
  return found.length > 0
    ? { ca: found.join('\n') }
    : { problem: `ca_file ${path} holds no certificate in PEM form` };
};

/** A provider's route, and why no call can take it. */
export interface ProviderRoute extends Omit<Route, 'connectMs'> {
  readonly problem: string | null;
}

/** Returns the way to a provider: its proxy and the certificates that it accepts. */
export const routeOf = (provider: ProviderConfig, env: Environment): ProviderRoute => {
  const proxy = chooseProxy(provider, new URL(baseUrlOf(provider)), env);
  const read = provider.caFile === undefined ? { ca: null } : readCertificates(provider.caFile);
  const unusable =
    proxy.kind === 'invalid' ? `${proxy.from} is not the URL of an http or https proxy (not shown)` : null;
  return 'problem' in read
    ? { proxy, ca: null, problem: read.problem }
    : { proxy, ca: read.ca, problem: unusable };
};

const PROXY_VARIABLES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** Returns users and passwords of proxies, which no message may show. */
export const proxySecrets = (providers: readonly ProviderConfig[], env: Environment): string[] => {
  const texts = [...PROXY_VARIABLES.map((name) => env[name]), ...providers.map(({ proxy }) => proxy)];
  return texts.flatMap((text) => {
    const url = text === undefined ? null : parseProxy(text.trim());
    return url === null ? [] : secretsOfProxy(url);
  });
};
