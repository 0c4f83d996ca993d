import { useMemo, type AnchorHTMLAttributes, type MouseEvent, type ReactNode } from 'react';
import { createStore, useStore } from './store.js';

/** The address of the page. The URL is the state: filters, selection and position are in it. */
export interface Address {
  readonly path: string;
  readonly search: string;
}

const current = (): Address => ({ path: location.pathname, search: location.search });
const address = createStore<Address>(current());
/** The address at rest: links follow it, so that a drag renders none of them. */
const rested = createStore<Address>(address.get());
const setAddress = (next: Address): void => {
  address.set(next);
  rested.set(next);
};

/** Asks before the page is left. Returns true to leave at once, or calls `leave` later. */
type LeaveGuard = (leave: () => void) => boolean;
let leaveGuard: LeaveGuard | null = null;

/** Sets what asks before this path is left. Returns a function that removes it. */
export const guardLeave = (guard: LeaveGuard): (() => void) => {
  leaveGuard = guard;
  return () => {
    if (leaveGuard === guard) leaveGuard = null;
  };
};

const mayLeave = (path: string, leave: () => void): boolean => {
  if (path === address.get().path || !leaveGuard) return true;
  return leaveGuard(() => {
    leaveGuard = null;
    leave();
  });
};

addEventListener('popstate', () => {
  const target = location.pathname + location.search;
  if (mayLeave(location.pathname, () => navigate(target))) return setAddress(current());
  const { path, search } = address.get();
  history.pushState(null, '', path + search);
});

/** Position of the log in the URL; null shows the present. */
export const positionOf = (search: string): number | null => {
  const text = new URLSearchParams(search).get('at');
  return text !== null && /^\d{1,15}$/.test(text) && Number(text) > 0 ? Number(text) : null;
};

/** Returns the address with the position of the page that links to it. */
export const keepPosition = (to: string): string => {
  const at = positionOf(address.get().search);
  if (at === null || !to.startsWith('/')) return to;
  const url = new URL(to, location.origin);
  if (!url.searchParams.has('at')) url.searchParams.set('at', String(at));
  return url.pathname + url.search;
};

const URL_DELAY_MS = 200;
let urlTimer: ReturnType<typeof setTimeout> | undefined;

/** True while the position of the page changes quickly: pages then show less at a time. */
export const isScrubbing = createStore(false);

/** Writes the address of the page to the URL, if a drag has not yet. */
const writeUrl = (): void => {
  if (urlTimer === undefined) return;
  clearTimeout(urlTimer);
  urlTimer = undefined;
  rested.set(address.get());
  isScrubbing.set(false);
  const { path, search } = address.get();
  history.replaceState(null, '', path + search);
};

/**
 * Shows the page at a position of the log at once. The URL follows at rest: browsers refuse more
 * than a few changes of it in a second.
 */
export const showPosition = (at: number | null): void => {
  const { path, search } = address.get();
  const params = new URLSearchParams(search);
  if (at === null) params.delete('at');
  else params.set('at', String(at));
  const text = params.toString();
  address.set({ path, search: text === '' ? '' : `?${text}` });
  if (urlTimer !== undefined) isScrubbing.set(true);
  clearTimeout(urlTimer);
  urlTimer = setTimeout(writeUrl, URL_DELAY_MS);
};

/** Goes to a path of this application. */
export const navigate = (to: string, options: { readonly replace?: boolean } = {}): void => {
  writeUrl();
  const url = new URL(to, location.origin);
  // Only paths of the own origin: no text of an event or a parameter can lead out.
  if (url.origin !== location.origin) return;
  const target = url.pathname + url.search;
  if (target === location.pathname + location.search) return;
  if (!mayLeave(url.pathname, () => navigate(to, options))) return;
  if (options.replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  setAddress(current());
};

export const useAddress = (): Address => useStore(address);

/** Changes parameters of the URL. An empty value removes one. */
export const setParams = (
  changes: Readonly<Record<string, string | number | null | undefined>>,
  options: { readonly replace?: boolean } = { replace: true },
): void => {
  writeUrl();
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') params.delete(name);
    else params.set(name, String(value));
  }
  const text = params.toString();
  navigate(location.pathname + (text === '' ? '' : `?${text}`), options);
};

/** Changes filters of the page: Back returns to the ones before. An empty value removes one. */
export const setFilters = (changes: Parameters<typeof setParams>[0]): void => setParams(changes, {});

/** Returns one parameter of the URL, or an empty string. */
export const useParam = (name: string): string => {
  const { search } = useAddress();
  return useMemo(() => new URLSearchParams(search).get(name) ?? '', [search, name]);
};

/** Returns the position at which the page is shown; null for the present. */
export const usePosition = (): number | null => {
  const { search } = useAddress();
  return useMemo(() => positionOf(search), [search]);
};

/** Returns the parts of a path that match a pattern such as `/agents/:id`, or null. */
export const matchPath = (pattern: string, path: string): Readonly<Record<string, string>> | null => {
  const wanted = pattern.split('/');
  const given = path.replace(/(?<!\/)\/+$/, '').split('/');
  if (path === '/') return pattern === '/' ? {} : null;
  if (pattern.endsWith('/*')) return matchRest(wanted.slice(0, -1), given);
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? '';
    if (part.startsWith(':')) found[part.slice(1)] = safeDecode(text);
    else if (part !== text) return null;
  }
  return found;
};

/** Matches a pattern whose end is a path of any length, such as `/files/*`. */
const matchRest = (wanted: readonly string[], given: readonly string[]): { readonly path: string } | null =>
  wanted.every((part, index) => part === given[index])
    ? { path: given.slice(wanted.length).map(safeDecode).join('/') }
    : null;

const safeDecode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  readonly to: string;
  readonly children: ReactNode;
}

/** A link within the application. It keeps the position of the page. */
export const Link = ({ to, children, onClick, ...rest }: LinkProps) => {
  useStore(rested);
  const target = keepPosition(to);
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain) return;
    event.preventDefault();
    navigate(keepPosition(to));
  };
  return (
    <a href={target} onClick={follow} {...rest}>
      {children}
    </a>
  );
};
