import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../support/free-ports.ts'
import { type ServerChild, stopped } from './child.ts'

/** nginx over a folder of files, one worker; null where it is not installed. */
export async function startNginx(dir: string, filesDir: string): Promise<ServerChild | null> {
  if (spawnSync('nginx', ['-v']).error !== undefined) return null
  const port = await freePort()
  mkdirSync(dir, { recursive: true })
  const file = join(dir, 'nginx.conf')
  writeFileSync(file, configuration(dir, filesDir, port))
  const child = spawn('nginx', ['-c', file, '-p', dir, '-e', join(dir, 'error.log')])
  for (let tries = 0; tries < 100 && !(await answers(port)); tries++) await pause(20)
  return { port, stop: () => stopped(child) }
}

function configuration(dir: string, filesDir: string, port: number): string {
  const files = openFilesAllowed()
  return `
daemon off; worker_processes 1; worker_rlimit_nofile ${files}; pid ${dir}/nginx.pid; user root;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 75;
  types { application/json json; } default_type application/octet-stream;
  client_body_temp_path ${dir}/a; proxy_temp_path ${dir}/b; fastcgi_temp_path ${dir}/c;
  uwsgi_temp_path ${dir}/d; scgi_temp_path ${dir}/e;
  server { listen 127.0.0.1:${port}; gzip_static on; location /external/osv/ { alias ${filesDir}/; } }
}`
}

/** nginx keeps files open; it fails requests when it may not open more. */
function openFilesAllowed(): number {
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })
  return Math.min(Number(stdout) || 1024, 100_000)
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
