import { useState } from 'react';
import { setFilters } from '../../data/router.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { Button } from '../../ui/ui.js';
import { areSame, FILTERS, PRESETS, type FilterName, type Filters } from './event-query.js';
import { fromLocalTime, toLocalTime } from './local-time.js';
import css from './events.module.css';
import pages from '../pages.module.css';

const LABELS: Readonly<Record<FilterName, string>> = {
  type: 'Types',
  excludeType: 'Without types',
  category: 'Category',
  agent: 'Agent',
  session: 'Session',
  run: 'Run',
  stream: 'Stream',
  severity: 'Severity',
  text: 'Text',
  since: 'From',
  until: 'Until',
};
const HINTS: Readonly<Partial<Record<FilterName, string>>> = {
  type: 'TurnFailed, RunFailed',
  excludeType: 'ModelCallStarted',
  category: 'session',
  text: 'in the data',
};
/** Filters that are always shown; the others appear when the URL has them, or by *More*. */
const SHOWN: readonly FilterName[] = ['type', 'severity', 'agent', 'text'];
const MORE = FILTERS.filter((name) => !SHOWN.includes(name));

/** A time of the zone of this browser, to the second. The URL has it in UTC. */
const TimeFilter = ({ name, value }: { readonly name: 'since' | 'until'; readonly value: string }) => (
  <label>
    {LABELS[name]}
    <input
      type="datetime-local"
      step={1}
      value={toLocalTime(value)}
      onChange={(event) => setFilters({ [name]: fromLocalTime(event.target.value) })}
    />
  </label>
);

const SeverityFilter = ({ value }: { readonly value: string }) => (
  <label>
    Severity
    <select value={value} onChange={(event) => setFilters({ severity: event.target.value })}>
      <option value="">any</option>
      <option>info</option>
      <option>warning</option>
      <option>error</option>
    </select>
  </label>
);

const Filter = ({ name, filters }: { readonly name: FilterName; readonly filters: Filters }) => {
  const value = filters[name] ?? '';
  if (name === 'severity') return <SeverityFilter value={value} />;
  if (name === 'since' || name === 'until') return <TimeFilter name={name} value={value} />;
  return <TypedFilter name={name} label={LABELS[name]} value={value} hint={HINTS[name]} />;
};

const setAll = (filters: Filters): void =>
  setFilters(Object.fromEntries(FILTERS.map((name) => [name, filters[name] ?? null])));

/** Sets the filters of a usual question, or clears them. */
const Presets = ({ filters }: { readonly filters: Filters }) => (
  <div className={pages.links} role="group" aria-label="Usual filters">
    {PRESETS.map((preset) => {
      const isSet = areSame(filters, preset.filters);
      return (
        <Button key={preset.name} aria-pressed={isSet} onClick={() => setAll(isSet ? {} : preset.filters)}>
          {preset.name}
        </Button>
      );
    })}
  </div>
);

/** Filters of the page of events: usual ones first, then the most used, and the others by *More*. */
export const FilterBar = ({ filters }: { readonly filters: Filters }) => {
  const [hasMore, setMore] = useState(false);
  const names = FILTERS.filter((name) => hasMore || SHOWN.includes(name) || filters[name] !== undefined);
  const isWhole = MORE.every((name) => filters[name] !== undefined);
  return (
    <div className={`${pages.filters} ${css.filters}`} role="search" aria-label="Filters">
      <Presets filters={filters} />
      {names.map((name) => (
        <Filter key={name} name={name} filters={filters} />
      ))}
      {!isWhole && (
        <Button aria-expanded={hasMore} onClick={() => setMore(!hasMore)}>
          {hasMore ? 'Less' : 'More'}
        </Button>
      )}
      {Object.keys(filters).length > 0 && <Button onClick={() => setAll({})}>Clear</Button>}
    </div>
  );
};
