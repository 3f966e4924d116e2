import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { format } from 'prettier'
import { loadQuick } from './limits.ts'
import { SECTIONS, SETTINGS } from '../../src/config/settings.ts'
import { type ErrorCode, MirrorError, exitCode, httpStatus } from '../../src/base/errors.ts'
import { createProgram } from '../../src/cli/program.ts'
import { manPage } from './man-page.ts'
import { NO_FIGURES } from './source-status.ts'
import { verbsOf } from '../../src/cli/verbs.ts'
import { isGroup } from '../../src/cli/verbs/verb.ts'
import { settingsSchema } from '../../src/config/json-schema.ts'
import { createMetrics } from '../../src/daemon/metrics/metrics.ts'
import { FEATURES } from '../../src/features.ts'

const VERBS = verbsOf(FEATURES)

/** A page of docs/, or a file, that is written from the running program, by its path from the root. */
export interface GeneratedPage {
  readonly path: string
  readonly text: string
}

const NOTE =
  'This page is generated: `npx vitest run test/docs.test.ts --update` writes it, and `npm test` fails while it is out of date.'

/** Text without what begins an HTML tag; code is left as it is. */
const plain = (text: string): string =>
  text
    .split('`')
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '\\<') : part))
    .join('`')

/** Text of a table cell: one line, without the character that ends a cell. */
const cell = (text: string): string => plain(text.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim())

const row = (...cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`

const table = (head: readonly string[], rows: readonly string[]): string =>
  [row(...head), row(...head.map(() => '---')), ...rows].join('\n')

const code = (text: string): string => (text === '' ? '' : `\`${text}\``)

/** docs/configuration.md: the settings schema with the defaults that are shipped. */
function configurationPage(): string {
  const { config } = loadQuick({ env: {}, cwd: '/' })
  const values = new Map<string, Readonly<Record<string, unknown>>>(
    Object.entries(config as unknown as Record<string, Record<string, unknown>>),
  )
  const shown = (section: string, name: string): string => {
    if (section === 'data' && name === 'dir') return code('data')
    const value = values.get(section)?.[name] ?? null
    if (value === null) return 'none'
    if (Array.isArray(value)) return value.length === 0 ? 'none' : code(value.join(', '))
    if (typeof value !== 'object') return code(typeof value === 'string' ? value : JSON.stringify(value))
    const entries = Object.entries(value).map(([entry, one]) => `${entry}: ${String(one)}`)
    return code(`{ ${entries.join(', ')} }`)
  }
  const tables = SECTIONS.map((section) => {
    const rows = SETTINGS.filter((one) => one.section === section).map(({ name, fileEnv, setting }) =>
      row(
        code(name) + (fileEnv === null ? '' : ' (secret)'),
        setting.allowed,
        shown(section, name),
        setting.secret ? '' : code(setting.example), // examples of secrets are random
      ),
    )
    return `## ${section}\n\n${table(['Setting', 'Accepts', 'Default', 'Example'], rows)}`
  })
  return [
    '# Configuration',
    NOTE,
    'Later wins: `config/default.yaml`, then your file (`--config FILE` or `PATCHMIRROR_CONFIG`), then the environment.',
    'The variable of `upstream.apiRoot` is `PATCHMIRROR_UPSTREAM_API_ROOT`: an underscore before each capital. Lists are separated by ' +
      'commas. A secret can also be the content of a file, named by the variable with `_FILE` added. Sizes accept units: `512 MB`, `512 MiB`; ' +
      'defaults of sizes are shown in bytes.',
    'The reason of each default is in [config/default.yaml](../config/default.yaml). `patchmirror config` shows the values in force and ' +
      'where each is set.',
    ...tables,
  ].join('\n\n')
}

const sentence = (text: string): string =>
  plain(`${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/([^.])$/, '$1.'))

/** The option that nearly every command has: the page of commands names it once. */
const JSON_OPTION = '--json'

/** One bullet for each option: its flags, what it does, its default. */
function optionList(command: Command): string {
  const own = command.options.filter(({ flags }) => flags !== JSON_OPTION)
  const lines = own.map(({ flags, description, defaultValue }) => {
    const preset = typeof defaultValue === 'string' ? ` (default: ${defaultValue})` : ''
    return `- ${code(flags)}: ${plain(description)}${preset}`
  })
  return lines.join('\n')
}

function commandText({ name, command }: NamedCommand): string {
  const takesMore = command.usage() !== '[options]'
  const usage = takesMore ? ` Usage: ${code(`${name} ${command.usage()}`)}.` : ''
  return [`## ${name.replace(/^patchmirror /, '')}`, sentence(command.description()) + usage, optionList(command)]
    .filter((part) => part !== '')
    .join('\n\n')
}

interface NamedCommand {
  readonly name: string
  readonly command: Command
}

/** Every command below one, each with its whole name; groups come before their commands. */
function commandsBelow(command: Command, name: string): NamedCommand[] {
  return command.commands.flatMap((one) => {
    const whole = `${name} ${one.name()}`
    return [{ name: whole, command: one }, ...commandsBelow(one, whole)]
  })
}

/** docs/cli.md: the tree of commands. */
function cliPage(): string {
  const program = createProgram(FEATURES)
  const all = commandsBelow(program, 'patchmirror')
  const paths = new Set(VERBS.filter((verb) => !isGroup(verb)).map(({ path }) => path))
  const runnable = all.filter(({ name }) => paths.has(name.replace('patchmirror ', '')))
  const withoutJson = runnable.filter(({ command }) => command.options.every(({ flags }) => flags !== JSON_OPTION))
  const names = withoutJson.map(({ name }) => code(name.replace('patchmirror ', '')))
  return [
    '# Commands',
    NOTE,
    '`patchmirror --help` prints the list of commands, `patchmirror COMMAND --help` one of them. [Exit codes](reference/exit-codes.md) are the ' +
      'same for all commands.',
    'Options of every command:',
    optionList(program),
    `${code(JSON_OPTION)} prints JSON, with every command but ${names.join(', ')}.`,
    ...runnable.map(commandText),
  ].join('\n\n')
}

/** Each error code with its comment, as base/errors.ts declares them; a type has no value to read at run time. */
function errorCodes(): { name: ErrorCode; meaning: string }[] {
  const text = readFileSync('src/base/errors.ts', 'utf8')
  const union = /export type ErrorCode =\n((?: *\| '.*\n)+)/.exec(text)?.[1] ?? ''
  return [...union.matchAll(/\| '(\w+)' \/\/ (.*)/g)].map(([, name = '', meaning = '']) => ({
    name: name as ErrorCode,
    meaning,
  }))
}

/** docs/reference/exit-codes.md: exit codes, and the error codes with what they mean to a shell and an HTTP client. */
function exitCodesPage(): string {
  const rows = errorCodes().map(({ name, meaning }) => {
    const error = new MirrorError(name, '')
    return row(code(name), meaning, String(exitCode(error)), String(httpStatus(error)))
  })
  return [
    '# Exit and error codes',
    NOTE,
    '## Exit codes of the command',
    table(
      ['Exit code', 'Meaning'],
      [
        row('0', 'complete, checked at the end of the run; found'),
        row('1', 'failed: nothing was changed, what was asked for is not found, or the service refused'),
        row('2', 'usage or settings are wrong, or the data folder is in use by another daemon'),
        row('3', 'partial, or not known: something that upstream lists is missing, or is not mirrored here'),
        row('4', 'quarantined: `patchmirror approve` or `reject` decides'),
      ],
    ),
    table(
      ['Command', 'Exits with'],
      [
        row(
          '`sync`, `status`',
          '3 also where a stored source is not synced, because its credential is not set any more (not where sources are named)',
        ),
        row(
          '`status`',
          'the first that applies: 1 failed or not readable, 4 quarantined, 3 partial, too old, not synced, of another scope, or not mirrored yet',
        ),
        row('`status --max-age`', 'first of all 3 when a source is older than that or has no data yet'),
        row('`relay`', '1 when a target is disabled'),
        row('`doctor`', '1 when a check failed, 3 when one only warns'),
        row(
          '`search`, `show`, `list`, `changes`, `vex`',
          '1 when the mirror does not have it, 3 when it cannot know: nothing is mirrored yet, the settings leave it out, or it is too old for `staleAction: refuse`',
        ),
        row(
          '`match`',
          '1 with findings that `--fail-on` names, 2 for a file that is no SBOM, 3 when the mirror cannot know; with `--fail-on` also where packages, severities or records are not known',
        ),
        row('`webhooks test`, `delete`', '1 when it was not delivered, or the subscription is still at the service'),
      ],
    ),
    '`list records` shows the stored dates however old the records are.',
    '## Error codes',
    'A run, a log line and an HTTP response name an error by its code.',
    table(['Code', 'What it names', 'Exit code', 'HTTP status'], rows),
  ].join('\n\n')
}

/** Labels of metrics with their values, and notes; the page that is served shows a label only once it has a value. */
const LABELS: Readonly<Record<string, string>> = {
  patchmirror_source_state:
    '`source`; `state`: `never`, `running`, `complete`, `partial`, `quarantined`, `failed`, `stopped`',
  patchmirror_source_age_seconds: '`source`',
  patchmirror_source_synced: '`source`',
  patchmirror_source_records: '`source`',
  patchmirror_source_partial_lists: '`source`',
  patchmirror_source_last_run_seconds: '`source`',
  patchmirror_webhook_requests_total:
    '`outcome`: `new`, `altered`, `duplicate`, `ignored`, `unauthorized`, `unavailable`, `refused`, `handshake`, `gone`; `reason`',
  patchmirror_webhook_inbox_rows: '`state`: `pending`, `done`, `ignored`, `dead`',
  patchmirror_webhook_refreshes_total: '`outcome`: `ok`, `failed`',
  patchmirror_webhook_latency_seconds:
    '`stage`: `stored`, `refreshed`, `visible`; `percentile`: `50`, `99` of the newest 500 that were not replayed',
  patchmirror_webhook_unannounced_changes: '`window`: `7d`',
  patchmirror_webhook_unconfirmed_announcements: '`window`: `7d`',
  patchmirror_webhook_subscription_suspect: '`window`: `7d`',
  patchmirror_connections_closed_total: '`reason`: `silent`, `unread`, `idle`, `full`, `address`',
  patchmirror_requests_short_of_memory_total: '`reason`: `refused`, `slow`, `stopped`',
  patchmirror_views_current: '`kind`: `osv`, `vex`',
  patchmirror_views_making: '`kind`: `osv`, `vex`',
  patchmirror_views_failing: '`kind`: `osv`, `vex`',
  patchmirror_relay_target_state:
    '`target`: its name, else its number in `patchmirror relay`; `state`: `ok`, `failing`, `disabled`, `paused`',
  patchmirror_relay_waiting: '`target`',
  patchmirror_relay_given_up_total: '`target`: not within four days, or it answered 410',
  patchmirror_inbox_bundles_total: '`outcome`: `imported`, `superseded`, `refused`',
  patchmirror_outbox_sequence: 'since the start of the daemon',
  patchmirror_edge_failing: '`target`: its place in `edge.purge`, from 1',
  patchmirror_edge_purges_total: '`target`; `outcome`: `ok`, `failed`; since the start of the daemon',
  patchmirror_inbox_waiting: 'half-copied, or a delta without its base',
  patchmirror_source_as_of_timestamp_seconds: '`source`',
  patchmirror_source_last_attempt_timestamp_seconds: '`source`',
  patchmirror_source_last_success_timestamp_seconds:
    '`source`; a run of everything: no refresh, no reconcile of the catalog',
  patchmirror_source_last_change_timestamp_seconds: '`source`',
  patchmirror_quarantine_open: '`source`',
  patchmirror_runs_total: '`source`; `kind`; `state`; since the start of the daemon',
  patchmirror_upstream_requests_total: '`source`; since the start of the daemon',
  patchmirror_upstream_bytes_total: '`source`; since the start of the daemon',
  patchmirror_http_requests_total:
    '`surface`: `public`, `remediation`, `settings`, `catalog`, `identity`, `views`, `mirror`, `other`; `code`',
  patchmirror_build_info: '`version`',
  patchmirror_certificate_expiry_timestamp_seconds: '`certificate`: `webhooks`',
  patchmirror_storage_state: '`state`: `ok`, `full`, `failing`, `damaged`',
  patchmirror_problems: '`code`: as `problems` in `/-/status`; `level`: `failed`, `warning`',
}

/** docs/reference/metrics.md: the names, types and help texts of a page that the program renders. */
async function metricsPage(): Promise<string> {
  const page = await createMetrics('').render(NO_FIGURES)
  const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const rows = [...page.matchAll(/^# HELP (patchmirror_\S+) (.*)$/gm)].map(([, name = '', help = '']) =>
    row(code(name), types.get(name) ?? '', help, LABELS[name] ?? ''),
  )
  const unknown = Object.keys(LABELS).filter((name) => !types.has(name))
  if (unknown.length > 0) throw new Error(`labels of metrics that do not exist: ${unknown.join(', ')}`)
  return [
    '# Metrics',
    NOTE,
    '`GET /-/metrics` is for Prometheus and needs no key. A state gauge has the value 1 for the state that applies and 0 for every other. Beside these it has the usual figures of a Node.js process: `process_*` and `nodejs_*`. Event loop lag is sampled each second, so a shorter delay may be missed. Alert rules are in `deploy/prometheus`, a dashboard in `deploy/grafana`.',
    table(['Metric', 'Type', 'Meaning', 'Labels and notes'], rows),
  ].join('\n\n')
}

/** Renders every generated page and file, formatted as the repository formats its kind. */
export async function generatedPages(): Promise<GeneratedPage[]> {
  const pages = {
    'docs/configuration.md': configurationPage(),
    'docs/cli.md': cliPage(),
    'docs/reference/exit-codes.md': exitCodesPage(),
    'docs/reference/metrics.md': await metricsPage(),
  }
  const style = JSON.parse(readFileSync('.prettierrc.json', 'utf8')) as object
  const schema = {
    path: 'config/schema.json',
    text: await format(JSON.stringify(settingsSchema()), { ...style, parser: 'json' }),
  }
  const written = await Promise.all(
    Object.entries(pages).map(async ([path, text]) => ({
      path,
      text: await format(`${text}\n`, { ...style, parser: 'markdown' }),
    })),
  )
  return [...written, schema, { path: 'deploy/man/patchmirror.1', text: manPage() }]
}
