import { hasDecided } from '../data/decisions.js';
import { useStore } from '../data/store.js';
import { Icon } from '../ui/icon.js';
import { Button } from '../ui/ui.js';
import { canNotify, notifies, setNotifies } from './attention/notifications.js';
import css from './shell.module.css';

/** Asks once, after the first decision about an approval, whether to notify a hidden tab. */
export const NotifyQuestion = () => {
  const answer = useStore(notifies);
  const isDue = useStore(hasDecided);
  if (answer !== 'unasked' || !isDue || !canNotify()) return null;
  return (
    <section className={css.banner} data-tone="ask" aria-label="Notifications">
      <Icon name="bell" />
      <span>Notify you while this tab is hidden? A notification says nothing of what has happened.</span>
      <Button onClick={() => void setNotifies(true)}>Notify me</Button>
      <Button look="quiet" onClick={() => void setNotifies(false)}>
        No
      </Button>
    </section>
  );
};
