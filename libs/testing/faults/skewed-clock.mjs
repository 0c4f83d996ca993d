// Loaded before everything else into the processes of a stack (NODE_OPTIONS=--import), it has `Date` go wrong by as many ms
// as the file of that process says, `<folder>/<service>-<n>`, also while it runs. Monotonic time stays as it is.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const [service, nth] = (process.env['ANTIPHON_SERVICE_ID'] ?? '').split('-');
const TrueDate = Date;
let offsetMs = 0;

const look = () => {
  try {
    offsetMs = Number(readFileSync(join(folder, `${service}-${nth}`), 'utf8'));
  } catch {
    // As long as there is no such file, it keeps the time that it has.
  }
};
const now = () => TrueDate.now() + offsetMs;

if (nth !== undefined) {
  look();
  setInterval(look, 50).unref();
  globalThis.Date = new Proxy(TrueDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new TrueDate(now()).toString(),
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
  });
}
