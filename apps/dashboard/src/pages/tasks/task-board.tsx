import { Link, setFilters } from '../../data/router.js';
import { formatNumber } from '../../ui/format.js';
import { Button, css as ui, Loading, ProblemBox, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { Holder, pageOfTask, Since, type Task } from './task-row.js';
import { countOfTab, STATE_TABS, type Counts, type TaskTab } from './task-tabs.js';
import { useTasks, type TaskFilter } from './use-tasks.js';
import pages from '../pages.module.css';
import css from './tasks.module.css';

/** Most cards of a column. The list of its state has all of them. */
const MOST = 25;

const Card = ({ task }: { readonly task: Task }) => (
  <li className={css.card}>
    <Link to={pageOfTask(task)} className={pages.name}>
      <VisibleText text={task.title} />
    </Link>
    <State of={task.state} />
    <div>
      <Holder task={task} />
    </div>
    <div className={ui.muted}>
      <Since task={task} />
    </div>
  </li>
);

interface BoardProps {
  readonly filter: TaskFilter;
  readonly counts: Counts | undefined;
}

const Column = ({ tab, filter, counts }: BoardProps & { readonly tab: TaskTab }) => {
  const { list, tasks } = useTasks(tab, filter, MOST);
  const count = counts ? countOfTab(tab, counts) : tasks.length;
  const shown = tasks.slice(0, MOST);
  return (
    <section className={css.column} aria-label={tab.title}>
      <h2>
        {tab.title} <span className={css.count}>{formatNumber(count)}</span>
      </h2>
      {list.problem && <ProblemBox problem={list.problem} retry={list.refresh} />}
      {!list.data && !list.problem && <Loading what="tasks" />}
      <ul aria-label={`${tab.title} tasks`}>
        {shown.map((task) => (
          <Card key={task.id} task={task} />
        ))}
      </ul>
      {list.data && shown.length === 0 && <p className={ui.muted}>none</p>}
      {count > shown.length && list.data && (
        <Button look="quiet" onClick={() => setFilters({ tab: tab.id, view: '' })}>
          Show all {formatNumber(count)}
        </Button>
      )}
    </section>
  );
};

/** Tasks by state. The columns are read only: a state is a fact, which no drag changes. */
export const TaskBoard = ({ filter, counts }: BoardProps) => (
  <div className={css.board}>
    {STATE_TABS.map((tab) => (
      <Column key={tab.id} tab={tab} filter={filter} counts={counts} />
    ))}
  </div>
);
