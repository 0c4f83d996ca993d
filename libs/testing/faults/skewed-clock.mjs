// Moves `Date` in a process of a stack, which loads it first (NODE_OPTIONS=--import). The file
// `<folder>/<service>-<n>` holds the offset in ms, and may change while the process runs. Monotonic
// time is not moved.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const [service, nth] = (process.env['ANTIPHON_SERVICE_ID'] ?? '').split('-');
const TrueDate = Date;
let offsetMs = 0;

const readOffset = () => {
  try {
    offsetMs = Number(readFileSync(join(folder, `${service}-${nth}`), 'utf8'));
  } catch {
    // Without the file the offset stays as it is.
  }
};
const now = () => TrueDate.now() + offsetMs;

if (nth !== undefined) {
  readOffset();
  setInterval(readOffset, 50).unref();
  globalThis.Date = new Proxy(TrueDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new TrueDate(now()).toString(),
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
  });
}
