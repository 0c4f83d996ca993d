import { useEffect } from 'react';
import { Link } from '../../data/router.js';
import { css as ui, Dialog } from '../../ui/ui.js';
import { attentionCount } from './attention-count.js';
import { AttentionList, ShowHidden } from './attention-list.js';
import { useNotifications } from './notifications.js';
import { useAttention } from './use-attention.js';

interface WatchProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

/** Follows what needs attention for the count of the top bar, and shows it in a drawer. */
export const WatchAttention = ({ isOpen, onClose }: WatchProps) => {
  const attention = useAttention();
  const { items, isLoading, hidden } = attention;
  const count = isLoading && items.length === 0 ? null : items.length;
  useEffect(() => attentionCount.set(count), [count]);
  useNotifications(items, isLoading);
  if (!isOpen) return null;
  return (
    <Dialog title="Attention" onClose={onClose} isDrawer>
      <AttentionList attention={attention} onFollow={onClose} />
      <div className={ui.dialogFoot}>
        <ShowHidden hidden={hidden} />
        <Link to="/attention" className={ui.button} onClick={onClose}>
          Open the page
        </Link>
      </div>
    </Dialog>
  );
};
