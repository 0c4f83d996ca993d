import { Link } from '../../data/router.js';
import { Button, css as ui, Empty, Loading, ProblemBox, State, Time } from '../../ui/ui.js';
import type { AttentionItem } from './attention-items.js';
import { hideItem, showAllItems, type Attention } from './use-attention.js';
import css from './attention.module.css';

interface LineProps {
  readonly item: AttentionItem;
  readonly onFollow?: (() => void) | undefined;
}

const Line = ({ item, onFollow }: LineProps) => (
  <li className={css.line}>
    <State of={item.tone === 'bad' ? 'error' : 'waiting'}>{item.tone === 'bad' ? 'wrong' : 'waits'}</State>
    <span className={css.text}>
      <strong>
        <bdi>{item.title}</bdi>
      </strong>{' '}
      <bdi className={ui.muted}>{item.reason}</bdi>
    </span>
    <span className={css.acts}>
      {item.at !== null && <Time at={item.at} />}
      {item.until !== undefined && (
        <span>
          until <Time at={item.until} isExact />
        </span>
      )}
      <Link to={item.to} className={ui.button} onClick={onFollow}>
        {item.action}
      </Link>
      <Button
        look="quiet"
        aria-label={`${item.isPast ? 'Dismiss' : 'Hide for 1 h'}: ${item.title}`}
        onClick={() => hideItem(item)}
      >
        {item.isPast ? 'Dismiss' : 'Hide for 1 h'}
      </Button>
    </span>
  </li>
);

interface ListProps {
  readonly attention: Attention;
  /** Called when an entry is followed, so that a drawer closes. */
  readonly onFollow?: () => void;
}

/** Lists what needs attention, and what could not be looked up. */
export const AttentionList = ({ attention: { items, isLoading, failed }, onFollow }: ListProps) => (
  <>
    {failed.map(
      ({ problem, refresh }, index) =>
        problem && <ProblemBox key={index} problem={problem} retry={refresh} />,
    )}
    {items.length > 0 && (
      <ul className={css.list} aria-label="What needs attention">
        {items.map((item) => (
          <Line key={item.id} item={item} onFollow={onFollow} />
        ))}
      </ul>
    )}
    {items.length === 0 && isLoading && <Loading what="what needs you" />}
    {items.length === 0 && !isLoading && (
      <Empty title={failed.length === 0 ? 'Nothing needs you' : 'Nothing else needs you'}>
        <p>Approvals, failures, stuck tasks, plan conflicts, paused providers and spent budgets show here.</p>
      </Empty>
    )}
  </>
);

/** Brings back what this browser has put away. */
export const ShowHidden = ({ hidden }: Pick<Attention, 'hidden'>) =>
  hidden > 0 && (
    <Button look="quiet" onClick={showAllItems}>
      Show {hidden} hidden
    </Button>
  );
