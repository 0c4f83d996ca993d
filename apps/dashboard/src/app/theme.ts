import { createStore } from '../data/store.js';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
const NAME = 'antiphon.theme';

const isTheme = (text: string | null): text is Theme => THEMES.includes(text as Theme);

const read = (): Theme => {
  const saved = localStorage.getItem(NAME);
  return isTheme(saved) ? saved : 'auto';
};

export const theme = createStore<Theme>('auto');

const apply = (value: Theme): void => {
  if (value === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = value;
};

/** Applies the saved theme. Call it before the first render. */
export const startTheme = (): void => {
  theme.set(read());
  apply(theme.get());
};

export const setTheme = (value: Theme): void => {
  localStorage.setItem(NAME, value);
  theme.set(value);
  apply(value);
};

/** Switches to the next theme: as the system, light, dark. */
export const nextTheme = (): void =>
  setTheme(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length] ?? 'auto');
