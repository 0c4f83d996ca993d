import type { ListRead } from '../data/use-list.js';
import css from './pages.module.css';
import { formatNumber } from '../ui/format.js';
import { Button } from '../ui/ui.js';

interface ShowMoreProps {
  readonly list: Pick<ListRead<unknown>, 'hasMore' | 'isReadingMore' | 'showMore'>;
  /** Noun of the rows, such as `runs`. */
  readonly what: string;
  readonly count: number;
}

/** Says that a list continues, and reads its next page. It keeps the focus while it reads. */
export const ShowMore = ({ list, what, count }: ShowMoreProps) =>
  list.hasMore && (
    <p className={css.pad}>
      These are {formatNumber(count)} {what}.{' '}
      <Button aria-disabled={list.isReadingMore} onClick={() => list.isReadingMore || list.showMore()}>
        {list.isReadingMore ? 'Reading …' : `Show more ${what}`}
      </Button>
    </p>
  );
