import type { Command } from 'commander'
import { createProgram } from '../../src/cli/program.ts'
import { AFTER, DESCRIPTION } from '../../src/cli/manual.ts'
import { verbsOf } from '../../src/cli/verbs.ts'
import { isGroup } from '../../src/cli/verbs/verb.ts'
import { VERSION } from '../../src/base/version.ts'
import { FEATURES } from '../../src/features.ts'

const VERBS = verbsOf(FEATURES)

/** What only the manual page has. */
const FILES = `
FILES
  data/mirror.db     all stored data (data.dir sets the folder)
  data/webhooks.db   received deliveries with their states, and events that
                     wait to be sent to relay targets
  data/derived/      all.zip and what scanners read (views/), rebuilt from the
                     database; safe to delete while nothing runs
  data/downloads/    unfinished downloads; they resume where they stopped
  data/local.key     the first key for the private paths, made by the first
                     "patchmirror serve"
  data/webhook-secrets.json
                     what webhooks are signed with

EXAMPLES
  PATCHMIRROR_UPSTREAM_API_ROOT=https://api.example.com patchmirror serve
  patchmirror sync osv --reconcile
  patchmirror status
  patchmirror search CVE-2026-12345
  patchmirror runs 42 && patchmirror approve 42
  patchmirror export-db osv-scanner /var/lib/osv-db
  patchmirror api-keys create mirror --role readonly --out /run/secrets/key
  patchmirror webhooks register --url https://hooks.example.com/-/webhooks
  patchmirror webhooks inbox
`

/** deploy/man/patchmirror.1 in the macros of man(7), from the table of commands and the texts of `patchmirror --help`. */
export function manPage(): string {
  const program = createProgram(FEATURES)
  const lines = [
    '.\\" Generated from the table of commands: npx vitest run test/docs.test.ts --update',
    `.TH PATCHMIRROR 1 "" "patchmirror ${VERSION}" "User Commands"`,
    '.SH NAME',
    'patchmirror \\- local mirror of a vulnerability\\-remediation service',
    '.SH SYNOPSIS',
    '.B patchmirror',
    '.RI [ options ] " command " [ argument " ...]"',
    '.SH DESCRIPTION',
    ...paragraphs(DESCRIPTION),
    '.SH OPTIONS',
    'Options of every command:',
    ...optionLines(program),
    '.TP',
    '.BR \\-h ", " \\-\\-help',
    'print the help page, or the one of a command',
    '.SH COMMANDS',
    ...VERBS.flatMap((verb) => (isGroup(verb) ? [] : commandLines(find(program, verb.path), verb))),
    ...sections(AFTER.replace(/OPTIONS[^]*?\n\n/, '')),
    ...sections(FILES),
    '.SH SEE ALSO',
    'The guides and the reference are in the folder',
    '.I docs',
    'of the sources.',
  ]
  return `${lines.join('\n')}\n`
}

function find(program: Command, path: string): Command {
  return path.split(' ').reduce((parent, word) => {
    const command = parent.commands.find((one) => one.name() === word)
    if (command === undefined) throw new Error(`there is no command ${path}`)
    return command
  }, program)
}

interface Described {
  readonly path: string
  readonly after?: string
  readonly example?: string
}

function commandLines(command: Command, { path, after, example }: Described): string[] {
  const summary = command.description()
  const text = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`.replace(/\.\.$/, '.')
  return [
    `.SS ${quoted(`${path} ${command.usage()}`)}`,
    ...paragraphs(text),
    ...optionLines(command),
    ...(after === undefined ? [] : ['.PP', ...paragraphs(after)]),
    ...(example === undefined ? [] : ['.PP', 'Example:', '.PP', ...block([`patchmirror ${example}`])]),
  ]
}

function optionLines(command: Command): string[] {
  return command.options.flatMap(({ flags, description, defaultValue }) => {
    const preset = typeof defaultValue === 'string' ? ` (default: ${defaultValue})` : ''
    return ['.TP', `.B ${quoted(flags)}`, ...filled(description + preset)]
  })
}

/** The sections of a help text: a heading in capitals, then items (`name  text`), paragraphs or examples. */
function sections(text: string): string[] {
  return text
    .trim()
    .split(/\n\n(?=[A-Z ]+\n)/)
    .flatMap((section) => {
      const [head = '', ...lines] = section.split('\n')
      const isExamples = head === 'EXAMPLES'
      const body = lines.map((line) => line.replace(/^ {2}/, ''))
      return [`.SH ${quoted(head)}`, ...(isExamples ? block(body) : items(body))]
    })
}

function items(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const [, name, text] = /^(\S+) {2,}(\S.*)$/.exec(line) ?? []
    return name === undefined || text === undefined ? filled(line) : ['.TP', `.B ${quoted(name)}`, ...filled(text)]
  })
}

function paragraphs(text: string): string[] {
  return text
    .trim()
    .split('\n')
    .flatMap((line) => (line.trim() === '' ? ['.PP'] : filled(line)))
}

/** Text in lines of at most 78 characters; the reader fills them again. */
function filled(text: string): string[] {
  const lines = escaped(text.trim()).match(/\S.{0,76}\S(?=\s|$)|\S+/g) ?? []
  return lines.map(protectedStart)
}

/** Lines that keep their breaks. */
function block(lines: readonly string[]): string[] {
  return ['.nf', '.RS 4', ...lines.map(plain), '.RE', '.fi']
}

/** Text of a line: nothing in it is an instruction, and its hyphens can be copied. */
function plain(text: string): string {
  return protectedStart(escaped(text))
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '...').replaceAll('"', '\\(dq')
}

function protectedStart(line: string): string {
  return /^[.']/.test(line) ? `\\&${line}` : line
}

/** Text as one argument of a macro. */
function quoted(text: string): string {
  return `"${plain(text)}"`
}
