import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { acquireLock } from '../../src/store/database/lock.ts'
import { CommanderError, createProgram } from '../../src/cli/program.ts'
import { verbsOf } from '../../src/cli/verbs.ts'
import { SANDBOX_KEYS } from '../sandbox/service/credentials.ts'
import { type Sandbox, createSandbox } from '../sandbox/server.ts'
import { databasePath, openWriter } from '../../src/store/database/open.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { operatorName } from '../../src/base/domain/run-facts.ts'
import { SYNONYMS } from '../../src/cli/verbs/synonyms.ts'
import { flagsOf, isGroup } from '../../src/cli/verbs/verb.ts'
import { VERSION } from '../../src/base/version.ts'
import { setSchema } from '../store/fixtures.ts'
import { type Finished, MAIN } from '../support/command.ts'
import { overwriteTable } from '../support/damage.ts'
import { commandHost } from '../support/hosted.ts'
import { listen } from '../support/origin.ts'
import { QUICK } from '../support/mirror.ts'
import { bothTest, LONG, longTest, test } from '../support/tables.ts'
import { FEATURES } from '../../src/features.ts'

const VERBS = verbsOf(FEATURES)

const run = commandHost()
let sandbox: Sandbox
let dir: string

beforeEach(async () => {
  sandbox = await createSandbox({
    records: 80,
    service: { images: 1, tags: 2, packages: 1, tickets: 3 },
  })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-cli-'))
})

afterEach(async () => {
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

function envOf(): Record<string, string> {
  return {
    ...QUICK,
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:1', // nothing answers there, so status reads the folder
  }
}

function patchmirror(...args: string[]): Promise<Finished> {
  return run(args, envOf(), dir)
}

/** The commands that do something, by the words that call them. */
function commandsOf(
  { commands }: Program,
  path: readonly string[],
): { path: readonly string[]; needsArgument: boolean }[] {
  return commands.flatMap((command) => {
    const own = [...path, command.name()]
    const needsArgument = command.registeredArguments.some(({ required }) => required)
    return command.commands.length > 0 ? commandsOf(command, own) : [{ path: own, needsArgument }]
  })
}

type Program = ReturnType<typeof createProgram>

/** The words that call a command, without `patchmirror`. */
function nameOf(command: Program): string {
  const { parent } = command
  const before = parent === null || parent.parent === null ? '' : `${nameOf(parent)} `
  return before + command.name()
}

/** What is printed for a command line that is refused, as the program does it. */
async function refusalOf(args: readonly string[]): Promise<string> {
  const program = createProgram(FEATURES)
  let told = ''
  const quiet = (command: Program): void => {
    command.configureOutput({ writeErr: (text) => void (told += text) })
    for (const one of command.commands) quiet(one)
  }
  quiet(program)
  await expect(program.parseAsync(['node', 'patchmirror', ...args])).rejects.toBeInstanceOf(CommanderError)
  return told
}

/** Reports whether a command has these words and options. */
function isCommandLine(line: string): boolean {
  const words = line.split(' ')
  const flags = words.filter((word) => word.startsWith('--'))
  const end = words.findIndex((word) => !/^[a-z][a-z-]*$/.test(word))
  const names = end < 0 ? words : words.slice(0, end)
  const verb = VERBS.find(({ path }) => path === names.join(' '))
  return verb !== undefined && flags.every((flag) => flagsOf(verb).some(([known]) => known.split(' ')[0] === flag))
}

describe('the command line', () => {
  longTest('--help has a line for each command in its group, and the exit codes, on one page', async () => {
    const { code, out } = await patchmirror('--help')
    expect(code).toBe(0)
    const rows = VERBS.filter(({ path }) => !path.includes(' ')).map(({ path }) => new RegExp(`^  ${path} `, 'm'))
    for (const row of rows) expect(out).toMatch(row)
    const first = [...new Set(VERBS.map(({ path }) => path.split(' ')[0] ?? ''))]
    const lines = first.map((word) => new RegExp(`^  ${word} .*$`, 'm').exec(out)?.[0] ?? word)
    const below = lines.map((line) => out.slice(out.indexOf(line) + line.length + 1).split('\n')[0] ?? '')
    expect(below.filter((line) => /^ {5}/.test(line))).toEqual([]) // a second line of a command
    expect(out.trim().split('\n').length).toBeLessThanOrEqual(60)
    expect(out).toMatch(/Run:\n[\s\S]*Ask:\n[\s\S]*Keep:\n[\s\S]*Move:\n[\s\S]*Service:\n[\s\S]*EXIT STATUS/)
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  longTest('a word that people try for a command is answered with the command, which exists', async () => {
    const names = new Set(VERBS.map(({ path }) => path))
    for (const [words, command] of Object.entries(SYNONYMS)) {
      expect([words, names.has(words)]).toEqual([words, false])
      expect(await refusalOf(words.split(' '))).toContain(
        `patchmirror: there is no command "${words}": it is "patchmirror ${command}"`,
      )
      if (!command.startsWith('-')) expect([command, isCommandLine(command)]).toEqual([command, true])
    }
    expect(await patchmirror('start')).toMatchObject({
      code: 2,
      err: 'patchmirror: there is no command "start": it is "patchmirror serve"\nusage: patchmirror [options] COMMAND\n',
    })
  })

  test('help prints the page of a command at any depth, and refuses what is none with what was meant', async () => {
    for (const words of [['bundle', 'export'], ['bundle'], ['sync', 'osv']]) {
      const command = words.filter((word) => word !== 'osv')
      const { code, out } = await patchmirror('help', ...words)
      expect([code, out]).toEqual([0, (await patchmirror(...command, '--help')).out])
    }
    for (const [words, refusal] of [
      [['serv'], "unknown command 'serv' (Did you mean serve?)\nusage: patchmirror [options] COMMAND\n"],
      [
        ['bundle', 'exprt'],
        "unknown command 'exprt' (Did you mean export?)\nusage: patchmirror bundle [options] [command]\n",
      ],
      [
        ['list', 'image'],
        'there is no command "list image": it is "patchmirror list tags"\nusage: patchmirror list [options] [command]\n',
      ],
      [
        ['keygen'],
        'there is no command "keygen": it is "patchmirror bundle keygen FILE"\nusage: patchmirror [options] COMMAND\n',
      ],
    ] as const)
      expect(await patchmirror('help', ...words)).toMatchObject({ code: 2, out: '', err: `patchmirror: ${refusal}` })
  })

  test('--version prints the version of package.json', async () => {
    expect(await patchmirror('--version')).toMatchObject({ code: 0, out: `${VERSION}\n` })
  })

  test.each([
    ['list', 'records', '--cve', ''],
    ['list', 'findings', ''],
    ['show', ''],
    ['sync', 'osv', ''],
    ['export-db', 'osv-scanner', 'out', '--ecosystem', 'npm', ''],
  ])('refuses an empty argument, as of an unset variable, instead of finding nothing: %s %s %s %s', async (...args) => {
    const { code, out, err } = await patchmirror(...args)
    expect([code, out, err]).toEqual([2, '', expect.stringMatching(/is empty: leave it out.*\nusage: patchmirror/)])
  })

  longTest('exits 2 with a hint for an unknown command, option or source', async () => {
    const wrongs = [['snyc'], ['sync', '--fulll'], ['sync', 'osvv'], ['sync', 'identity', '--reconcile']]
    for (const args of LONG ? wrongs : wrongs.slice(0, 2)) {
      const { code, err } = await patchmirror(...args)
      expect(code, args.join(' ')).toBe(2)
      expect(err.length).toBeGreaterThan(20)
    }
    const wrong = (await patchmirror('sync', 'osvv')).err
    expect(wrong).toContain('the sources are: feeds, osv')
    expect(wrong).toContain('usage: patchmirror sync [options] [source...]')
    const incomplete = [
      [['approve'], 'approve [options] <run>'],
      [['export-db', 'osv-scanner'], 'export-db [options] <scanner> <dir>'],
      [['webhooks', 'rotate'], 'webhooks rotate [options] <id>'],
    ] as const
    for (const [args, usage] of LONG ? incomplete : incomplete.slice(2)) {
      const { code, err } = await patchmirror(...args)
      expect([code, err]).toEqual([2, expect.stringContaining(`usage: patchmirror ${usage}`)])
    }
  })

  longTest('gives the action of every command as many arguments as its row of the table declares', async () => {
    for (const { path, arguments: given = '', load, forms = [] } of VERBS) {
      const declared = given === '' ? 0 : given.split(' ').length
      const own = load === undefined ? [] : [{ load, takesArguments: true }]
      for (const { load, takesArguments = false } of [...own, ...forms]) {
        // behind them come the options, and the features for those that ask for them
        const before = takesArguments ? declared : 0
        expect([path, [1, 2]]).toEqual([path, expect.arrayContaining([(await load()).length - before])])
      }
    }
  })

  test('has for every command an example that its help page shows and that parses', async () => {
    for (const { path, example } of VERBS.filter((verb) => !isGroup(verb))) {
      expect([path, example]).toEqual([path, expect.stringMatching(`^${path}( |$)`)])
      const calls: string[] = []
      const program = createProgram(FEATURES)
      const take = (command: Program): void => {
        command.action(() => void calls.push(nameOf(command)))
        for (const one of command.commands) take(one)
      }
      for (const one of program.commands) take(one)
      await program.parseAsync((example ?? '').split(' '), { from: 'user' })
      expect(calls).toEqual([path])
    }
    expect((await patchmirror('sync', '--help')).out).toContain('patchmirror sync osv --reconcile')
    expect((await patchmirror('config', '--help')).out).toMatch(/what needs a restart\.\n\nExample:\n/)
  })

  test('doctor --save names a place where no file can be written before it examines anything', async () => {
    const file = join(dir, 'no-such', 'a.zip')
    const { code, out, err } = await patchmirror('doctor', '--save', file)
    const why = `${file} cannot be written: the folder ${dirname(file)} does not exist: create it, or correct the path`
    expect([code, out, err.split('\n')[0]]).toEqual([2, '', `patchmirror: ${why}`])
  })

  test('names a folder that takes no file, whatever its rights are, without a stack', async () => {
    await patchmirror('sync', 'osv')
    for (const args of [['backup'], ['bundle', 'export', '--unsigned'], ['bundle', 'keygen'], ['doctor', '--save']]) {
      const { code, err } = await patchmirror(...args, '/proc/x.zip')
      const said =
        /^patchmirror: \/proc\/x\.zip cannot be written: the folder \/proc cannot be used \(.*\)\nusage: .*\n$/
      expect([args, code, err]).toEqual([args, 2, expect.stringMatching(said)])
    }
  })

  test('accepts --json for every command that prints', () => {
    // The daemon logs JSON by itself; a script of a shell and a JSON Schema have one form.
    const others = ['serve', 'completion']
    const without = VERBS.filter((verb) => !isGroup(verb) && !flagsOf(verb).some(([flags]) => flags === '--json'))
    expect(without.map(({ path }) => path).sort()).toEqual(others.sort())
  })

  test('refuses options that do not go together, with the one that each of them needs', async () => {
    const wrongs = [
      [['doctor', '--repair'], '--repair goes with --data alone'],
      [['doctor', '--data', '--save', 'x.zip'], '--data and --save do not go together: give one of them'],
      [['status', '--ready', '--watch'], '--watch does not go with --ready'],
      [['status', '--digest', 'all'], '--digest takes "content" or nothing: all'],
      [['relay', '--secret', '--enable', '1'], '--enable and --secret do not go together: give one of them'],
    ] as const
    for (const [args, why] of wrongs) {
      const { code, err } = await patchmirror(...args)
      const usage = `usage: patchmirror ${args[0]} [options]`
      expect([args, code, err]).toEqual([args, 2, `patchmirror: ${why}\n${usage}\n`])
    }
  })

  longTest(
    'a form of a command takes no argument of it, and another identity is made after a question alone',
    async () => {
      const rollback = await patchmirror('fleet', 'rollback', '40', '--end')
      expect([rollback.code, rollback.err]).toEqual([2, expect.stringContaining('--end takes no argument: 40')])
      await patchmirror('sync', 'feeds')
      const identity = (await patchmirror('bundle', 'inspect')).out
      const asked = await patchmirror('bundle', 'inspect', '--new-identity')
      expect([asked.code, asked.err]).toEqual([2, expect.stringContaining('there is no terminal: give --yes as well')])
      expect((await patchmirror('bundle', 'inspect')).out).toBe(identity)
      const { code, out } = await patchmirror('bundle', 'inspect', '--new-identity', '--yes')
      expect([code, out === identity]).toEqual([0, false])
      expect((await patchmirror('bundle', 'inspect')).out).toBe(out)
    },
  )

  test('sync takes several sources, also separated by commas', async () => {
    const { code, out } = await patchmirror('sync', 'feeds,osv')
    expect([code, out]).toEqual([0, expect.stringMatching(/^feeds: complete .*\nosv: complete /)])
  })

  test('prints the usage of a command after an unknown option or a missing argument', async () => {
    const verbs = commandsOf(createProgram(FEATURES), [])
    expect(verbs.length).toBeGreaterThan(30)
    for (const { path, needsArgument } of verbs) {
      const usage = expect.stringContaining(`usage: patchmirror ${path.join(' ')}`) as string
      const wrong = [[...path, '--no-such-option'], ...(needsArgument ? [path] : [])]
      for (const args of wrong) expect([args, await refusalOf(args)]).toEqual([args, usage])
    }
  })

  longTest('ends a command silently when the reader of its output or messages is gone', async () => {
    await patchmirror('sync', 'feeds')
    const env = { ...process.env, ...envOf() }
    const node = `'${process.execPath}' '${MAIN}'`
    const pipe = (script: string): string =>
      spawnSync('bash', ['-c', script], { env, cwd: dir, encoding: 'utf8' }).stdout
    expect(pipe(`{ ${node} runs 2>err; echo $? >code; } | true; cat err code`)).toBe('0\n')
    expect(pipe(`{ ${node} runs 99 2>&1 >out; echo $? >code; } | true; cat out`)).toBe('')
    expect(Number(readFileSync(join(dir, 'code'), 'utf8'))).toBeLessThan(3)
  })

  longTest('ends a watch whose reader is gone', () => {
    const script = `timeout 20 '${process.execPath}' '${MAIN}' status --watch | head -1 > /dev/null; exit "\${PIPESTATUS[0]}"`
    expect(spawnSync('bash', ['-c', script], { env: { ...process.env, ...envOf() }, cwd: dir }).status).toBe(0)
  })

  longTest('finishes what a command does, although its messages are read no further or cannot be written', async () => {
    const env = { ...process.env, ...envOf() }
    const node = `'${process.execPath}' '${MAIN}'`
    const syncing = async (script: string): Promise<unknown> =>
      (await once(spawn('bash', ['-c', script], { env, cwd: dir, stdio: 'ignore' }), 'exit'))[0] as unknown
    expect(await syncing(`${node} sync feeds 2>&1 | true; exit "\${PIPESTATUS[0]}"`)).toBe(0)
    expect(await syncing(`${node} sync osv 2>/dev/full`)).toBe(1)
    expect(await syncing(`${node} sync osv >/dev/full`)).toBe(1)
    expect((await patchmirror('runs')).out).not.toMatch(/failed|running/)
    expect((await patchmirror('runs')).out.match(/complete/g)).toHaveLength(3)
  })

  longTest('says that its output cannot be written, as on a full disk, without a trace of the program', () => {
    const env = { ...process.env, ...envOf() }
    const { status, stderr } = spawnSync('bash', ['-c', `'${process.execPath}' '${MAIN}' help >/dev/full`], {
      env,
      cwd: dir,
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^patchmirror: the output cannot be written: .*\n$/)])
  })

  longTest('reads no further than a delivery may be large, from an input without an end', () => {
    const secrets = join(dir, 'secrets')
    writeFileSync(secrets, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n', { mode: 0o600 })
    const command = `'${process.execPath}' '${MAIN}' webhooks check - --secret-file '${secrets}' </dev/zero`
    const env = { ...process.env, ...envOf() }
    const { status, stderr } = spawnSync('bash', ['-c', command], { env, cwd: dir, encoding: 'utf8' })
    expect([status, stderr]).toEqual([2, expect.stringContaining('larger than 64 MiB, that is no delivery')])
  })

  test('names a missing file and what to do, whatever command reads it', async () => {
    const secrets = ['--secret-file', 'none.txt']
    for (const args of [
      ['webhooks', 'check', 'none.txt'],
      ['webhooks', 'check', '-', ...secrets],
      ['bundle', 'export', 'x.bundle', '--unsigned', '--for', 'none.txt'],
    ]) {
      const { code, err } = await patchmirror(...args)
      expect([args, code, err]).toEqual([
        args,
        2,
        expect.stringMatching(/none\.txt cannot be read: there is no such file: check the path/),
      ])
      expect(err).not.toContain('ENOENT')
    }
  })

  bothTest('names a database that is not migrated, and one from before the first release, as such', async () => {
    const path = databasePath(join(dir, 'data'))
    openWriter(join(dir, 'data')).close()
    setSchema(path, 3)
    expect(await patchmirror('status')).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /mirror\.db has schema 3, .* written by no release of Patchmirror.*data\.dir/,
      ) as string,
    })
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    new Database(path).exec('PRAGMA journal_mode = WAL').close() // as a start leaves it that is killed
    const readers = [
      ['runs'],
      ['status'],
      ['doctor', '--data'],
      ['bundle', 'inspect'],
      ['keys', 'list'],
      ['bundle', 'need', 'x'],
    ]
    for (const args of LONG ? readers : readers.slice(1, 3)) {
      const { code, err } = await patchmirror(...args)
      expect([args, code, err]).toEqual([
        args,
        3,
        expect.stringMatching(
          /is not migrated to the schema of this version .* start the daemon \("patchmirror serve"\)/,
        ),
      ])
    }
  })

  test('reports with status --live a server that is no mirror, and the mirror of another data folder', async () => {
    await patchmirror('sync', 'feeds')
    const headers: Record<string, string> = {}
    const other = createServer((_request, response) => response.writeHead(200, headers).end('{"status":"ok"}'))
    const PATCHMIRROR_SERVER_LISTEN = `127.0.0.1:${await listen(other)}`
    const ask = (data: string) =>
      run(['status', '--live'], { PATCHMIRROR_DATA_DIR: join(dir, data), PATCHMIRROR_SERVER_LISTEN }, dir)
    expect(await ask('data')).toMatchObject({
      code: 1,
      out: expect.stringContaining('something that is no Patchmirror answers') as string,
    })
    headers['X-Mirror-Instance'] = '0'.repeat(16)
    expect(await ask('data')).toMatchObject({
      code: 1,
      out: expect.stringContaining('the mirror of another data folder') as string,
    })
    mkdirSync(join(dir, 'empty'))
    expect(await ask('empty')).toMatchObject({
      code: 1,
      out: expect.stringContaining('the mirror of another data folder') as string,
    })
    expect(await ask('not-here')).toMatchObject({ code: 0 })
    other.close()
  })

  test('exits 2 for a sync without an upstream, and says how to set one', async () => {
    const { code, err } = await run(['sync'], {}, dir)
    expect(code).toBe(2)
    expect(err).toContain('PATCHMIRROR_UPSTREAM_API_ROOT')
  })

  longTest('reports a sync in one line for each source, and a second sync changes nothing', async () => {
    const first = await patchmirror('sync')
    expect(first.code).toBe(0)
    expect(first.out).toMatch(/^feeds: complete .*\nosv: complete \(run 2, 2 requests, .* 80 added/m)
    const second = await patchmirror('sync')
    expect(second.out).toMatch(/osv: complete \(run 4, 1 request, 0 bytes\): upstream has nothing new/)
    // The log is younger than the seven days that are asked about by default.
    const changes = await patchmirror('changes')
    expect([changes.code, changes.out]).toEqual([0, expect.stringContaining('nothing changed')])
  })

  test('prints with sync --json the run reports and nothing else', async () => {
    const { out, code } = await patchmirror('sync', 'osv', '--json')
    const [report] = JSON.parse(out) as Run[]
    expect(code).toBe(0)
    expect(report).toMatchObject({
      source: 'osv',
      state: 'complete',
      kind: 'sync',
      trigger: 'command',
    })
  })

  test('reports with sync --dry-run what would change, and stores nothing', async () => {
    const { code, out } = await patchmirror('sync', 'osv', '--dry-run')
    expect(code).toBe(0)
    expect(out).toContain('80 to add, 0 to change, 0 to remove; nothing was stored')
    expect((await patchmirror('runs')).out.trim().split('\n')).toHaveLength(1)
  })

  longTest('status says nothing of the number of records where nothing is mirrored', async () => {
    await patchmirror('sync', 'feeds')
    expect((await patchmirror('status')).out).toMatch(/^osv +never +- +- /m)
  })

  longTest('exits 1 after a failed run, 3 after a partial one, 4 after a quarantined one', async () => {
    await patchmirror('sync')
    const broken = sandbox.faults.set('/external/osv/all.json', { kind: 'status', status: 500 })
    const failed = await patchmirror('sync', 'osv')
    expect(failed.code).toBe(1)
    expect(failed.out).toContain('upstream answered 500')
    expect((await patchmirror('status')).code).toBe(1)
    broken.clear()
    const ghosts = sandbox.faults.set('/external/osv/all.json', { kind: 'ghostIds', count: 2 })
    const partial = await patchmirror('sync', 'osv')
    expect(partial.code).toBe(3)
    expect(partial.out).toContain('2 could not be fetched')
    expect((await patchmirror('status')).code).toBe(3)
    const row = (await patchmirror('runs', '4')).out
    for (const wrong of ['abc', '4e0'])
      expect((await patchmirror('runs', wrong)).err).toContain(`a run is a whole number above 0, not ${wrong}`)
    expect(row.slice(row.indexOf('\nlackingIds')).trim().split('\n')).toHaveLength(3)
    ghosts.clear()
    sandbox.faults.set('/external/osv/all.json', { kind: 'shrinkIndex', keep: 0.3 })
    const refused = await patchmirror('sync', 'osv')
    expect(refused.code).toBe(4)
    expect(refused.out).toMatch(/patchmirror approve \d+/)
    expect((await patchmirror('status')).code).toBe(4)
    const wrong = (await patchmirror('runs', '--failed')).out.trim().split('\n').slice(1)
    expect(wrong.map((line) => line.split(/ +/)[3])).toEqual(['quarantined', 'partial', 'failed'])
    expect((await patchmirror('runs', '--failed')).out).toMatch(/^run .* took +trigger +what happened\n.* command +\S/)
    expect((await patchmirror('runs', '--failed', '--limit', '1')).out).toContain('quarantined')
  })

  longTest('imports a quarantined change with approve, and refuses it for ever with reject', async () => {
    await patchmirror('sync')
    sandbox.feed.remove(40)
    const refused = await patchmirror('sync', 'osv')
    const run = /approve (\d+)/.exec(refused.out)?.[1] ?? ''
    expect((await patchmirror('runs', run)).out).toMatch(/quarantine of .*all\.json[\s\S]*would remove 40 of 80/)
    const approved = await patchmirror('approve', run)
    expect(approved).toMatchObject({ code: 0 })
    expect(approved.out).toContain('40 removed')
    expect(await patchmirror('approve', run)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`run ${run} is approved already (`) as string,
      err: '',
    })
    expect(await patchmirror('reject', run)).toMatchObject({
      code: 1,
      err: `patchmirror: what run ${run} refused is settled already: approved; nothing else waits either\n`,
    })
    sandbox.feed.remove(30)
    const again = await patchmirror('sync', 'osv')
    const next = /reject (\d+)/.exec(again.out)?.[1] ?? ''
    expect((await patchmirror('reject', next)).code).toBe(0)
    const by = operatorName({})
    for (const [id, decision] of [
      [run, 'approved'],
      [next, 'rejected'],
    ] as const)
      expect(JSON.parse((await patchmirror('runs', id, '--json')).out)).toMatchObject({
        facts: { by, decision, decidedBy: by },
      })
    const still = await patchmirror('sync', 'osv')
    expect(still.code).toBe(4)
    expect(still.out).toContain('rejected before')
    expect(still.out).toContain('nothing is to do: it stays rejected')
    expect((await patchmirror('approve', 'x')).code).toBe(2)
    expect((await patchmirror('reject', '999')).err).toContain('there is no run 999: "patchmirror runs" lists them')
    expect((await patchmirror('reject', '1')).err).toContain(
      'run 1 is complete: nothing of it waits for a decision; nothing else waits either',
    )
    expect(await patchmirror('reject', next)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`run ${next} is rejected already`) as string,
    })
    const { out } = await patchmirror('status')
    expect(out).toContain(
      `osv: a rejected change is still offered; nothing newer is published until upstream corrects it, or the settings of its scope change\n  patchmirror approve ${next}\n`,
    )
    const met = /run (\d+),/.exec(still.out)?.[1] ?? ''
    expect(met).not.toBe(next)
    expect((await patchmirror('runs', met)).out).toMatch(
      new RegExp(`quarantine of .*all\\.json[\\s\\S]*rejected; "patchmirror approve ${next}" undoes`),
    )
  })

  longTest('a decision about nothing names what waits, and creates no database', async () => {
    for (const decide of ['approve', 'reject']) {
      const { code, err } = await patchmirror(decide, '1')
      expect([code, err]).toEqual([1, expect.stringContaining('there is no run 1: nothing has run')])
    }
    expect(existsSync(join(dir, 'data', 'mirror.db'))).toBe(false)
    await patchmirror('sync')
    sandbox.feed.remove(40)
    const refused = await patchmirror('sync', 'osv')
    const run = /approve (\d+)/.exec(refused.out)?.[1] ?? ''
    expect((await patchmirror('approve', '1')).err).toContain(
      `run 1 is complete: nothing of it waits for a decision; waiting: run ${run} of osv`,
    )
  })

  longTest('prints the status from the folder when no daemon runs, as a table and as JSON', async () => {
    for (const args of [['status'], ['status', '--json'], ['status', '--max-age', '26h']]) {
      const { code, out, err } = await patchmirror(...args)
      const said = expect.stringMatching(/nothing is mirrored yet in .*patchmirror sync/) as string
      expect([args, code, out, err]).toEqual([args, 3, '', said])
    }
    expect(await patchmirror('runs')).toMatchObject({
      code: 3,
      err: expect.stringMatching(/nothing has run yet in .*: run "patchmirror sync"\n$/) as string,
    })
    await patchmirror('sync')
    const { out } = await patchmirror('status')
    expect(out).toMatch(
      /\n\nno daemon answers on .*: start it with "patchmirror serve"; read from the data folder\n\nosv: /,
    )
    expect(out).toMatch(/^source +state +records/)
    expect(out).toMatch(/^osv +complete +80 /m)
    const status = JSON.parse((await patchmirror('status', '--json')).out) as {
      sources: { name: string }[]
    }
    expect(status.sources.map(({ name }) => name)).toEqual(['feeds', 'osv'])
    const lock = acquireLock(join(dir, 'data'), 'serve')
    expect((await patchmirror('status')).out).toMatch(
      /^no daemon answers on .*: one runs, and "patchmirror doctor" says/m,
    )
    lock.release()
  })

  longTest(
    'sync is partial where a stored catalog is not synced for want of a credential, and names it as status does',
    async () => {
      const env = {
        ...QUICK,
        PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
        PATCHMIRROR_DATA_DIR: join(dir, 'data'),
        PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
        PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
        PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:1',
      }
      const warning = 'catalog: served as it is stored, not synced: it needs a credential'
      const first = await run(['sync'], env, dir)
      expect(first.out).toMatch(/catalog: complete .*: [1-9]\d* lists changed, [1-9]\d* answers/)
      expect(first.err).not.toContain(warning)
      expect((await run(['status'], env, dir)).out).not.toContain(warning)
      const reconciled = await run(['sync', '--reconcile'], env, dir)
      expect([reconciled.code, reconciled.out.match(/^\w+: complete/gm)]).toEqual([
        0,
        ['feeds: complete', 'osv: complete', 'catalog: complete'],
      ])
      const second = await patchmirror('sync')
      expect(second).toMatchObject({ code: 3, err: expect.stringContaining(warning) as string })
      expect(second.err).toContain('name the others: "patchmirror sync feeds osv"')
      const status = await patchmirror('status')
      expect([status.code, status.out.includes(warning.replace('catalog: ', ''))]).toEqual([3, true])
      const named = await patchmirror('sync', 'feeds', 'osv')
      expect([named.code, named.err.includes(warning)]).toEqual([0, false])
    },
  )

  longTest('does not report the status of the mirror of another data folder', async () => {
    await patchmirror('sync')
    const other = createServer((_request, response) => {
      response.end(JSON.stringify({ version: '1', instance: '0'.repeat(16), sources: [] }))
    })
    const port = String(await listen(other))
    const env = { PATCHMIRROR_DATA_DIR: join(dir, 'data'), PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` }
    const { out, code } = await run(['status'], env, dir)
    other.close()
    expect(code).toBe(0)
    expect(out).toMatch(/^osv +complete +80 /m)
    expect(out).toMatch(/the mirror of another data folder answers on .*: "patchmirror doctor" says what to do/)
  })

  test('prints with config the settings with their origin, and masks secrets', async () => {
    const env = { PATCHMIRROR_UPSTREAM_PROXY: 'http://me:hunter2@proxy.example:3128' }
    const { out, code } = await run(['config'], env, dir)
    expect(code).toBe(0)
    expect(out).not.toContain('hunter2')
    expect(out).toMatch(/upstream\.proxy +\*+ +env PATCHMIRROR_UPSTREAM_PROXY/)
    expect(out).toMatch(/server\.listen +127\.0\.0\.1:8080 +default/)
  })

  test('reports all wrong settings in one message, and exits 2', async () => {
    const env = { PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:high', PATCHMIRROR_OSV_SCHEDULE: '99 * * * *' }
    const { code, err } = await run(['config'], env, dir)
    expect(code).toBe(2)
    expect(err).toMatch(/server\.listen[\s\S]*osv\.schedule|osv\.schedule[\s\S]*server\.listen/)
  })

  test('names with config --check all problems of a file, as JSON too, and prints with --schema the JSON Schema', async () => {
    const file = join(dir, 'settings.yaml')
    writeFileSync(file, 'server: { listen: high }\nosv: { schedule: soon }\nsync: { maxAgeHours: 0 }\n')
    const found = await run(['config', '--check', file, '--json'], {}, dir)
    const { problems } = JSON.parse(found.out) as { problems: string[] }
    expect([found.code, problems.length]).toEqual([2, 3])
    const told = await run(['config', '--check', file], {}, dir)
    expect([told.code, told.err]).toEqual([2, expect.stringContaining('line 2')])
    writeFileSync(file, 'server: { listen: localhost:8081 }\n')
    expect(await run(['config', '--check', file], {}, dir)).toMatchObject({ code: 0 })
    const { out } = await run(['config', '--schema'], {}, dir)
    expect(JSON.parse(out)).toHaveProperty('properties.server.properties.keepAliveSeconds.maximum', 86_400)
    expect((await run(['config'], {}, dir)).out).toMatch(/server\.listen +127\.0\.0\.1:8080 +default/)
  })

  longTest('exits 0 for doctor --data after a sync, and 3 before the first sync', async () => {
    expect((await patchmirror('doctor', '--data')).code).toBe(3)
    openWriter(join(dir, 'data')).close()
    const none = await patchmirror('doctor', '--data')
    expect([none.code, none.out]).toEqual([3, expect.stringContaining('nothing is mirrored yet')])
    await patchmirror('sync', 'osv')
    expect((await patchmirror('doctor', '--data')).out).toContain('80 records, the index and the archive are')
    await patchmirror('sync')
    const { code, out } = await patchmirror('doctor', '--data')
    expect(code).toBe(0)
    expect(out).toContain('80 records, the index, the feeds and the archive are sound')
  })

  longTest('mirrors a damaged database again with doctor --data --repair, and keeps the local keys', async () => {
    await patchmirror('sync')
    const { out: key } = await patchmirror('keys', 'create', '--name', 'ci')
    const before = (await patchmirror('keys', 'list', '--json')).out
    expect(key).toContain('pmk_')
    const log = (await patchmirror('list', 'records', '--csv')).out
    overwriteTable(databasePath(join(dir, 'data')), 'osv_body')
    const repaired = await patchmirror('doctor', '--data', '--repair')
    expect(repaired.out).toContain('the damaged database is kept as ')
    expect(repaired.out).toContain(
      'kept: 1 local key, the secret that signs links, the identity of this mirror in bundles, the dates of records and the change log',
    )
    expect(repaired.code).toBe(0)
    expect((await patchmirror('list', 'records', '--csv')).out).toBe(log)
    expect((await patchmirror('keys', 'list', '--json')).out).toBe(before)
    overwriteTable(databasePath(join(dir, 'data')), 'local_key')
    expect((await patchmirror('doctor', '--data', '--repair')).out).toContain('make new ones')
    expect((await patchmirror('doctor', '--data')).code).toBe(0)
  })
})
