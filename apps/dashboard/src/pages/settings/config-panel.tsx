import { useState } from 'react';
import type { RouteReply } from '@antiphon/client';
import { useParam } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ShowMore } from '../show-more.js';
import { TypedFilter } from '../../ui/typed-filter.js';
import { css as ui, Empty, Loading, ProblemBox, Table } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from '../pages.module.css';

type Setting = RouteReply<'readConfig'>['settings'][number];

/** Number of rows that are shown at first, and added by each press. */
const PAGE = 20;

const textOf = ({ value }: Setting): string => {
  if (value === null) return 'none';
  return Array.isArray(value) ? value.join(', ') || 'none' : String(value);
};

/** Returns true for the port of the gateway if it was taken, so that another one serves. */
const isOtherPort = (setting: Setting): boolean =>
  setting.key === 'gateway.port' && location.port !== '' && textOf(setting) !== location.port;

/** Returns true if the key, the value or the origin of a setting contains a text. */
const matches = (setting: Setting, text: string): boolean =>
  [setting.key, textOf(setting), setting.origin].some((part) => part.toLowerCase().includes(text));

/** Shows every setting of the workspace with its origin, and a filter. */
export const EffectiveConfig = () => {
  const { data, problem, refresh } = useRead('readConfig', {}, { hasPast: false });
  const filter = useParam('setting');
  const [limit, setLimit] = useState(PAGE);
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="settings" />;
  const found = data.settings.filter((setting) => matches(setting, filter.toLowerCase()));
  const rows = found.slice(0, limit);
  const list = {
    hasMore: found.length > limit,
    isReadingMore: false,
    showMore: () => setLimit(limit + PAGE),
  };
  return (
    <>
      <div className={`${css.filters} ${css.pad}`} role="search" aria-label="Settings">
        <TypedFilter name="setting" label="Setting" value={filter} hint="part of key, value or origin" />
      </div>
      {found.length === 0 && (
        <Empty title="No setting matches">
          <p>The filter is a part of a key, a value or an origin. Make it shorter.</p>
        </Empty>
      )}
      {found.length > 0 && (
        <Table label="Effective configuration" columns={['Setting', 'Value', 'Origin']}>
          {rows.map((setting) => (
            <tr key={setting.key}>
              <td className={ui.mono}>
                <VisibleText text={setting.key} />
              </td>
              <td>
                <VisibleText text={textOf(setting)} />
                {isOtherPort(setting) && ` (taken: ${location.port} serves this page)`}
              </td>
              <td>{setting.origin}</td>
            </tr>
          ))}
        </Table>
      )}
      <ShowMore list={list} what="settings" count={rows.length} />
    </>
  );
};
