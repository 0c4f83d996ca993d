import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Returns the path of the installed Chromium, or throws an error that says how to get one. */
const findChromium = (): string => {
  const chosen = process.env['ANTIPHON_CHROMIUM'];
  const path = chosen ?? PLACES.find((place) => existsSync(place));
  if (path !== undefined && existsSync(path)) return path;
  throw new Error(
    chosen === undefined
      ? `These tests need Chromium, and it is in none of ${PLACES.join(', ')}. Install Debian's package "chromium", or set ANTIPHON_CHROMIUM to the path of its program.`
      : `ANTIPHON_CHROMIUM is ${chosen}, and there is no such file. Set it to the path of Chromium's program.`,
  );
};

/** Starts the installed Chromium without a window, with more command line arguments if given. */
export const launchChromium = (args: readonly string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', ...args] });
