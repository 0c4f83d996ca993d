import { useLayoutEffect, useRef } from 'react';
import { createStore } from '../data/store.js';
import { Dialog } from '../ui/ui.js';
import { NAVIGATION } from './pages.js';
import { keepPosition, navigate } from '../data/router.js';
import css from './shell.module.css';

const NAME = 'antiphon.single-keys';

/** False turns keys without Ctrl or ⌘ off, for people whose tools type them. */
export const hasSingleKeys = createStore(localStorage.getItem(NAME) !== 'off');
export const setSingleKeys = (isOn: boolean): void => {
  localStorage.setItem(NAME, isOn ? 'on' : 'off');
  hasSingleKeys.set(isOn);
};

const SECOND_KEY_MS = 1_500;

export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

interface Handlers {
  readonly openPalette: () => void;
  readonly openKeys: () => void;
}

/** Returns what the key after `g` does. */
const goTo = (key: string): (() => void) | undefined => {
  const target = NAVIGATION.find((page) => page.key === key);
  return target && (() => navigate(keepPosition(target.to)));
};

const openNewChat = (): void => navigate('/chats/new');

/** Keys that act at once. */
const keysOf = ({ openPalette, openKeys }: Handlers): Readonly<Record<string, () => void>> => ({
  ...{ '?': openKeys, '/': openPalette, c: openNewChat },
});

/** Listens for the keys of the whole application. */
export const useKeys = (handlers: Handlers): void => {
  const latest = useRef(handlers);
  latest.current = handlers;
  // From the first paint on: a key that is pressed as soon as the page shows is not lost.
  useLayoutEffect(() => {
    let firstAt = Number.NEGATIVE_INFINITY;
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        return latest.current.openPalette();
      }
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      // A part of the page that has used the key, such as the graph, prevents its default.
      if (!isPlain || event.defaultPrevented || !hasSingleKeys.get() || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      const isSecond = performance.now() - firstAt < SECOND_KEY_MS;
      const run = isSecond ? goTo(event.key) : keysOf(latest.current)[event.key];
      if (run) {
        // A field that the page focuses now would get the letter.
        event.preventDefault();
        run();
      }
      firstAt = event.key === 'g' ? performance.now() : Number.NEGATIVE_INFINITY;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
};

/** Lists the keys. */
export const KeyList = ({ onClose }: { readonly onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl className={css.keys}>
      <dt>
        <kbd>Ctrl</kbd> <kbd>K</kbd> or <kbd>/</kbd>
      </dt>
      <dd>Find a page, an agent, a text, a file, a task, a position or a time</dd>
      <dt>
        <kbd>c</kbd>
      </dt>
      <dd>New chat</dd>
      <dt>
        <kbd>]</kbd>
      </dt>
      <dd>In a chat: open or close the side panel</dd>
      <dt>
        <kbd>?</kbd>
      </dt>
      <dd>This list</dd>
      <dt>
        <kbd>←</kbd> <kbd>→</kbd>
      </dt>
      <dd>In the position bar: one event back or on; Home and End go to the ends</dd>
      <dt>
        <kbd>Shift</kbd> <kbd>←</kbd> <kbd>→</kbd>
      </dt>
      <dd>In the position bar: the start of the turn before or after</dd>
      <dt>
        <kbd>f</kbd>
      </dt>
      <dd>In a turn of a session: fork after it</dd>
      <dt>
        <kbd>j</kbd>
      </dt>
      <dd>In the list of approvals: the next one</dd>
      <dt>
        <kbd>↑</kbd> <kbd>↓</kbd>
      </dt>
      <dd>In the list of events: one row up or down; Enter opens it</dd>
      {NAVIGATION.map(({ key, title }) => (
        <div key={key} style={{ display: 'contents' }}>
          <dt>
            <kbd>g</kbd> <kbd>{key}</kbd>
          </dt>
          <dd>{title}</dd>
        </div>
      ))}
    </dl>
    <p>Settings turns single keys off.</p>
  </Dialog>
);
