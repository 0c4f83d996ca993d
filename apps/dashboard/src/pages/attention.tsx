import { AttentionList, ShowHidden } from '../app/attention/attention-list.js';
import { useAttention } from '../app/attention/use-attention.js';
import { PageHead } from '../app/page-head.js';
import { usePosition } from '../data/router.js';
import { PresentMark } from '../ui/present-mark.js';
import { Panel } from '../ui/ui.js';
import css from './pages.module.css';

/** Lists what waits for a person, and what has failed in the last day. */
export const Attention = () => {
  const isPast = usePosition() !== null;
  const attention = useAttention();
  const count = attention.items.length;
  return (
    <>
      <PageHead
        title="Attention"
        question="What waits for me, and what went wrong?"
        actions={isPast ? <PresentMark /> : undefined}
      />
      <div className={css.stack}>
        <Panel
          title={count === 0 ? 'Now' : `Now: ${count}`}
          actions={<ShowHidden hidden={attention.hidden} />}
        >
          <AttentionList attention={attention} />
        </Panel>
      </div>
    </>
  );
};
