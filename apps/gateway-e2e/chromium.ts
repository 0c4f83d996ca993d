import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';
import { CHROMIUM_PLACES } from '../../tools/bootstrap/chromium.mjs';

/** Returns the path of the installed Chromium, or throws an error that says how to get one. */
const findChromium = (): string => {
  const chosen = process.env['ANTIPHON_CHROMIUM'];
  const path = chosen ?? CHROMIUM_PLACES.find((place) => existsSync(place));
  if (path !== undefined && existsSync(path)) return path;
  throw new Error(
    chosen === undefined
      ? `These tests need Chromium, and it is in none of ${CHROMIUM_PLACES.join(', ')}. Run \`npm test\` once, which gets it, install Debian's package "chromium", or set ANTIPHON_CHROMIUM to the path of its program.`
      : `ANTIPHON_CHROMIUM is ${chosen}, and there is no such file. Set it to the path of Chromium's program.`,
  );
};

/** Starts the installed Chromium without a window, with more command line arguments if given. */
export const launchChromium = (args: readonly string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', ...args] });
