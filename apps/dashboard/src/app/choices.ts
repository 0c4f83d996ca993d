import { keepPosition, navigate } from '../data/router.js';
import type { IconName } from '../ui/icon.js';

/** A thing that the palette offers. */
export interface Choice {
  readonly id: string;
  readonly icon: IconName;
  readonly title: string;
  readonly kind: string;
  /** Text that says why it is offered. */
  readonly reason?: string;
  readonly run: () => void;
}

/** Returns a choice that opens a page. */
export const link = (to: string, icon: IconName, title: string, kind: string, reason = ''): Choice => ({
  ...{ id: to, icon, title, kind, run: () => navigate(keepPosition(to)) },
  ...(reason === '' ? {} : { reason }),
});
