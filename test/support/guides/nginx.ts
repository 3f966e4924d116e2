import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { findTool, startTool } from '../tools.ts'

/** Where it writes its id: `nginx -s reload` reads that. */
const PID = 'run/nginx.pid'

/**
 * Starts nginx on a machine of a page, with the files of `etc/nginx/conf.d` and workers of another user, as Debian's package
 * does. The machine's `nginx -s reload` is about this one. Returns what ends it.
 */
export async function startNginx(root: string): Promise<() => Promise<void>> {
  const nginx = findTool('nginx')
  if (nginx === null) throw new Error('there is no nginx; a block that uses it has a comment `needs: nginx`')
  mkdirSync(join(root, 'etc/nginx/conf.d'), { recursive: true })
  const file = join(root, 'etc/nginx/nginx.conf')
  writeFileSync(file, configuration(root))
  const args = ['-c', file, '-p', root, '-e', join(root, 'var/log/nginx.log')]
  const quoted = [nginx, ...args].map((one) => `'${one}'`).join(' ')
  writeFileSync(join(root, 'bin/nginx'), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 })
  const server = startTool(nginx, [...args, '-g', 'daemon off;'])
  while (!existsSync(join(root, PID))) {
    if (server.said().includes('[emerg]')) throw new Error(server.said())
    await pause(20)
  }
  return () => server.stop()
}

function configuration(root: string): string {
  const user = userInfo().uid === 0 ? 'user www-data;' : ''
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(root, 'tmp', name)};`,
  )
  return `${user} worker_processes 1; pid ${join(root, PID)};
events { worker_connections 64; }
http { access_log off; ${temporary.join(' ')} include ${join(root, 'etc/nginx/conf.d')}/*.conf; }
`
}
