import type { Locator, Page } from 'playwright-core';

const MAX_TABS = 150;

/** Keys of a person who uses no pointer. */
export interface Keys {
  hasFocus(target: Locator): Promise<boolean>;
  /** Presses Tab, or `key`, until the element has the focus. */
  tabTo(target: Locator, key?: string): Promise<void>;
  /** Goes to the element by Tab and presses a key, Enter by default. */
  press(target: Locator, key?: string): Promise<void>;
}

/** Returns the keys of a page. Only what a person can reach by them is reached. */
export const createKeys = (page: () => Page): Keys => {
  const hasFocus = async (target: Locator): Promise<boolean> =>
    (await target.and(page().locator(':focus')).count()) > 0;

  const tabTo = async (target: Locator, key = 'Tab'): Promise<void> => {
    await target.first().waitFor();
    for (let pressed = 0; pressed < MAX_TABS; pressed++) {
      if (await hasFocus(target)) return;
      await page().keyboard.press(key);
    }
    throw new Error(`${MAX_TABS} × ${key} did not reach ${String(target)}`);
  };
  const press = async (target: Locator, key = 'Enter'): Promise<void> => {
    await tabTo(target);
    await page().keyboard.press(key);
  };
  return { hasFocus, tabTo, press };
};
