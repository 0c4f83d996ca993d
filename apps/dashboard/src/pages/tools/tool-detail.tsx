import { schemaRows } from '../../data/schema-rows.js';
import { Link, setParams } from '../../data/router.js';
import { countOf, formatDuration, formatNumber } from '../../ui/format.js';
import { Json } from '../../ui/json.js';
import { css as ui, Empty, IconButton, Panel, State, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import pages from '../pages.module.css';
import { Names, SOURCES, type Tool } from './tool-texts.js';
import css from './tools.module.css';

type Owner = Tool['agents'][number];

const retryOf = ({ retry, isIdempotent }: Pick<Tool, 'retry' | 'isIdempotent'>): string => {
  if (retry === null)
    return isIdempotent ? 'the default policy: 3 tries' : '1 try: a lost call is not repeated';
  const timeouts = retry.onTimeout ? ', also after a timeout' : '';
  return `${retry.maxAttempts} tries at most, ${retry.backoffMs} to ${retry.maxBackoffMs} ms apart${timeouts}`;
};

const Facts = ({ tool }: { readonly tool: Tool }) => (
  <dl className={ui.facts}>
    <dt>Source</dt>
    <dd>
      {SOURCES[tool.source].long}
      {tool.moduleDigest !== null && <div className={css.digest}>SHA-256 {tool.moduleDigest}</div>}
    </dd>
    <dt>May reach</dt>
    <dd>
      <Names names={tool.capabilities} none="no host, no capability" />
    </dd>
    <dt>Limits</dt>
    <dd>
      {tool.timeoutMs === null ? 'no time of its own' : `${formatDuration(tool.timeoutMs)} for a try`}
      {tool.memoryMb !== null && `, ${formatNumber(tool.memoryMb)} MiB of memory`}
      {tool.maxOutputBytes !== null && `, a result of ${formatNumber(tool.maxOutputBytes / 1024)} KiB`}
    </dd>
    <dt>Repeats</dt>
    <dd>
      {tool.isIdempotent ? 'idempotent' : 'not idempotent'}; {retryOf(tool)}
    </dd>
    <dt>Calls in 24 h</dt>
    <dd>
      {tool.calls === null && 'not shown to you'}
      {tool.calls?.count === 0 && 'never called'}
      {tool.calls !== null && tool.calls.count > 0 && (
        <>
          {countOf(tool.calls.count, 'call')}, {formatNumber(tool.calls.failures)} failed
          {tool.calls.lastAt !== null && (
            <>
              , the last <Time at={tool.calls.lastAt} />
            </>
          )}
        </>
      )}
    </dd>
  </dl>
);

const Inputs = ({ tool }: { readonly tool: Tool }) => {
  const rows = schemaRows(tool.inputSchema);
  return (
    <>
      {rows.length === 0 && <Empty title="It names no arguments" />}
      {rows.length > 0 && (
        <Table
          label={`Arguments of ${tool.name}`}
          columns={['Argument', 'Type', 'Required', 'Limits', 'Meaning']}
        >
          {rows.map(({ path, type, isRequired, limits, text }, index) => (
            <tr key={index}>
              <td className={ui.mono}>
                <VisibleText text={path} />
              </td>
              <td className={css.type}>
                <VisibleText text={type} />
              </td>
              <td>{isRequired ? 'yes' : 'no'}</td>
              <td className={pages.contentCell}>
                <VisibleText text={limits} />
              </td>
              <td className={pages.contentCell}>
                <VisibleText text={text} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <details className={css.schema}>
        <summary>JSON Schema</summary>
        <Json value={tool.inputSchema} label={`Schema of ${tool.name}`} />
      </details>
    </>
  );
};

const ruleOf = ({ approval }: Owner): string => {
  if (approval === null) return 'none';
  const when = approval.ask === 'always' ? 'each call' : 'each call that is not idempotent';
  return `${when}, by ${approval.answerBy} or above, within ${formatDuration(approval.expiresAfterS * 1_000)}`;
};

const Owners = ({ tool: { name, agents, agentCount } }: { readonly tool: Tool }) =>
  agents.length === 0 ? (
    <Empty title={agentCount === 0 ? 'No agent has it' : 'You may read none of its agents'}>
      <p>The tools of an agent are set on its page, or in the configuration.</p>
    </Empty>
  ) : (
    <>
      <Table label={`Agents that have ${name}`} columns={['Agent', 'Approval', 'Own limit of a try']}>
        {agents.map((agent) => (
          <tr key={agent.id}>
            <td>
              <Link to={`/agents/${encodeURIComponent(agent.id)}`} className={pages.name}>
                <VisibleText text={agent.name} />
              </Link>
              {agent.name !== agent.id && <div className={ui.mono}>{agent.id}</div>}
            </td>
            <td>{agent.approval === null ? ruleOf(agent) : <State of="pending">{ruleOf(agent)}</State>}</td>
            <td>{agent.timeoutMs === undefined ? 'none' : formatDuration(agent.timeoutMs)}</td>
          </tr>
        ))}
      </Table>
      {agentCount > agents.length && (
        <p className={pages.pad}>{formatNumber(agentCount - agents.length)} more agents have it.</p>
      )}
    </>
  );

/** One tool: its arguments, its limits, and the agents that have it. It runs nothing. */
export const ToolDetail = ({ tool }: { readonly tool: Tool }) => (
  <Panel
    title={tool.name}
    actions={
      <IconButton icon="close" label={`Close ${tool.name}`} onClick={() => setParams({ tool: null })} />
    }
  >
    <div className={css.detail}>
      <div className={css.column}>
        <p className={css.description}>
          <VisibleText text={tool.description} />
        </p>
        <Facts tool={tool} />
      </div>
      <div className={css.column}>
        <h3>Arguments</h3>
        <Inputs tool={tool} />
        <h3>Agents</h3>
        <Owners tool={tool} />
      </div>
    </div>
  </Panel>
);
