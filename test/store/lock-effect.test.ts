import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished } from 'vitest'
import { acquireLock } from '../../src/store/database/lock.ts'
import { localLockOption, probeLocks } from '../../src/store/lock-effect.ts'
import { run } from '../support/command.ts'
import { longTest, test } from '../support/tables.ts'

/** A library that stands for a file system: below LOCKS_BELOW a lock fails with ENOLCK, or is granted and not kept. */
const LIBRARY = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is_below(int fd) {
  char name[64], path[4096];
  const char *folder = getenv("LOCKS_BELOW");
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(name, path, sizeof path - 1);
  return folder && length > 0 && strncmp(path, folder, strlen(folder)) == 0;
}
static int control(const char *symbol, int fd, int command, void *argument) {
  int is_lock = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
  if (is_lock && is_below(fd)) {
    if (getenv("LOCKS_REFUSED")) { errno = ENOLCK; return -1; }
    if (command == F_GETLK) ((struct flock *)argument)->l_type = F_UNLCK;
    return 0;
  }
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, symbol);
  return real(fd, command, argument);
}
#define FORWARD(name) int name(int fd, int command, ...) { va_list list; va_start(list, command); \\
  void *argument = va_arg(list, void *); va_end(list); return control(#name, fd, command, argument); }
FORWARD(fcntl)
FORWARD(fcntl64)
`

/** A writer waits for a lock so long, milliseconds. */
const WAIT_MS = 10_000
const OPEN = new URL('../../src/store/database/open.ts', import.meta.url).href

function hasCompiler(): boolean {
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' })
    return process.platform === 'linux'
  } catch {
    return false
  }
}

/** A folder that is removed when the test ends. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-locks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const CAN_COMPILE = hasCompiler()

describe.skipIf(!CAN_COMPILE)('without cc on Linux these are skipped:', () => {
  let library = ''
  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), 'patchmirror-locks-'))
    library = join(folder, 'locks.so')
    const source = join(folder, 'locks.c')
    writeFileSync(source, LIBRARY)
    execFileSync('cc', ['-shared', '-fPIC', '-w', '-o', library, source, '-ldl'])
    return () => rmSync(folder, { recursive: true, force: true })
  })

  async function patchmirror(command: string, refused: boolean): Promise<string> {
    const folder = makeFolder()
    const dir = join(folder, 'data')
    mkdirSync(dir)
    const env = {
      LD_PRELOAD: library,
      LOCKS_BELOW: dir,
      ...(refused && { LOCKS_REFUSED: '1' }),
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
      PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
    }
    const { code, out, err } = await run([command], env, folder)
    expect(code).not.toBe(0)
    expect(out + err).not.toMatch(/another Patchmirror|another process writes/)
    expect(readdirSync(dir).filter((name) => name.includes('probe'))).toEqual([])
    return out + err
  }

  longTest.each(['serve', 'sync', 'doctor'])(
    '"patchmirror %s" says that locks do not work in a data folder whose file system has none',
    async (command) => {
      expect(await patchmirror(command, true)).toMatch(
        /locks do not work in .+: its file system refuses every lock.+local disk/s,
      )
    },
  )

  test('a database in such a folder is refused at once, also where it would wait for another process', () => {
    const folder = makeFolder()
    const script = `import { openWriter } from ${JSON.stringify(OPEN)}
      try { openWriter(${JSON.stringify(folder)}) } catch (error) { console.log(error.message) }`
    const env = { ...process.env, LD_PRELOAD: library, LOCKS_BELOW: folder, LOCKS_REFUSED: '1' }
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      env,
      timeout: WAIT_MS,
    })
    expect(said.toString()).toContain('locks do not work')
  })

  longTest.each(['serve', 'doctor'])(
    '"patchmirror %s" says that locks have no effect where every one is granted',
    async (command) => {
      expect(await patchmirror(command, false)).toMatch(/locks have no effect in .+local disk/s)
    },
  )
})

test('locks of a local disk are kept, also while another lock is held', () => {
  const folder = makeFolder()
  const lock = acquireLock(folder, 'serve')
  expect(probeLocks(folder)).toBe('kept')
  expect(() => acquireLock(folder, 'serve')).toThrow(`process ${process.pid}`)
  lock.release()
})

test.each([
  ['/data/mirror', 'nfs4 srv:/x rw,vers=4.2,local_lock=none', null],
  ['/data/mirror', 'nfs srv:/x rw,nolock,local_lock=all', 'nolock'],
  ['/data/mirror', 'nfs srv:/x rw,local_lock=posix', 'local_lock=posix'],
  ['/data/mirror', 'cifs //srv/x rw,nobrl', 'nobrl'],
  ['/database', 'cifs //srv/x rw,nobrl', null],
  ['/data/mirror', 'ext4 /dev/sda1 rw,nobrl', null],
])('a lock in %s, mounted as %s, is seen by other machines unless by %s', (path, mount, option) => {
  const [type, source, options] = mount.split(' ')
  const mounts = [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw',
    `30 22 0:40 / /data rw,relatime shared:5 - ${type} ${source} ${options}`,
    '31 22 0:41 / /data2 rw - tmpfs tmpfs rw',
  ]
  expect(localLockOption(path, mounts.join('\n'))).toBe(option)
})
