/**
 * The schema, one step for each version; PRAGMA user_version counts the steps done. A step that was released is never
 * edited. Times are milliseconds since the epoch, JSON columns carry their own version `v`.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE templates (
    template_id TEXT PRIMARY KEY,
    build_id TEXT NOT NULL,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_size_mb INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_spawned_at INTEGER,
    spawn_count INTEGER NOT NULL DEFAULT 0,
    envd_version TEXT NOT NULL,
    source TEXT NOT NULL,
    start TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE aliases (
    alias TEXT PRIMARY KEY,
    template_id TEXT NOT NULL REFERENCES templates (template_id) ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX aliases_by_template ON aliases (template_id);

  CREATE TABLE sandboxes (
    sandbox_id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'killing', 'ended', 'lost')),
    end_reason TEXT,
    end_message TEXT,
    template_id TEXT NOT NULL,
    alias TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    end_at INTEGER NOT NULL,
    ended_at INTEGER,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_size_mb INTEGER NOT NULL,
    envd_version TEXT NOT NULL,
    envd_access_token TEXT,
    traffic_access_token TEXT,
    host_secret TEXT NOT NULL,
    slot_index INTEGER,
    netns TEXT,
    volume_id TEXT,
    incarnation TEXT,
    boot_id TEXT,
    metadata TEXT NOT NULL,
    options TEXT NOT NULL,
    vm TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sandboxes_by_start ON sandboxes (started_at, sandbox_id) WHERE state IN ('creating', 'running', 'killing');
  CREATE INDEX sandboxes_by_end ON sandboxes (ended_at, sandbox_id) WHERE state IN ('ended', 'lost');
  `,
  `
  CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    mask_prefix TEXT NOT NULL,
    mask_suffix TEXT NOT NULL,
    value_length INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE sandboxes_next (
    sandbox_id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN
      ('creating', 'running', 'pausing', 'paused', 'resuming', 'killing', 'ended', 'lost')),
    end_reason TEXT,
    end_message TEXT,
    template_id TEXT NOT NULL,
    alias TEXT,
    created_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    end_at INTEGER NOT NULL,
    ended_at INTEGER,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_size_mb INTEGER NOT NULL,
    envd_version TEXT NOT NULL,
    envd_access_token TEXT,
    traffic_access_token TEXT,
    host_secret TEXT NOT NULL,
    slot_index INTEGER,
    netns TEXT,
    volume_id TEXT,
    incarnation TEXT,
    boot_id TEXT,
    metadata TEXT NOT NULL,
    options TEXT NOT NULL,
    vm TEXT,
    checkpoint TEXT,
    paused_at INTEGER
  ) STRICT, WITHOUT ROWID;
  INSERT INTO sandboxes_next SELECT *, NULL, NULL FROM sandboxes;
  DROP TABLE sandboxes;
  ALTER TABLE sandboxes_next RENAME TO sandboxes;
  CREATE INDEX sandboxes_by_start ON sandboxes (started_at, sandbox_id) WHERE state NOT IN ('ended', 'lost');
  CREATE INDEX sandboxes_by_end ON sandboxes (ended_at, sandbox_id) WHERE state IN ('ended', 'lost');
  `,
  `
  CREATE TABLE template_builds (
    build_id TEXT PRIMARY KEY,
    template_id TEXT NOT NULL,
    alias TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'building', 'ready', 'error')),
    wanted TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX template_builds_by_template ON template_builds (template_id);
  CREATE INDEX template_builds_unfinished ON template_builds (alias) WHERE status IN ('waiting', 'building');
  `,
  `
  CREATE TABLE snapshots (
    template_id TEXT PRIMARY KEY,
    checkpoint_id TEXT NOT NULL UNIQUE,
    alias TEXT,
    tag TEXT,
    sandbox_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_size_mb INTEGER NOT NULL,
    envd_version TEXT NOT NULL,
    start TEXT NOT NULL,
    drives TEXT NOT NULL,
    UNIQUE (alias, tag)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX snapshots_by_time ON snapshots (created_at, template_id);
  `,
  `
  CREATE TABLE template_versions (
    template_id TEXT NOT NULL REFERENCES templates (template_id) ON DELETE CASCADE,
    build_id TEXT NOT NULL,
    cpu_count INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    disk_size_mb INTEGER NOT NULL,
    built_at INTEGER NOT NULL,
    envd_version TEXT NOT NULL,
    source TEXT NOT NULL,
    start TEXT NOT NULL,
    PRIMARY KEY (template_id, build_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE template_tags (
    template_id TEXT NOT NULL REFERENCES templates (template_id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    build_id TEXT NOT NULL,
    assigned_at INTEGER NOT NULL,
    PRIMARY KEY (template_id, tag),
    FOREIGN KEY (template_id, build_id) REFERENCES template_versions (template_id, build_id) ON DELETE CASCADE
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX template_tags_by_version ON template_tags (template_id, build_id);
  INSERT INTO template_versions SELECT template_id, build_id, cpu_count, memory_mb, disk_size_mb, updated_at,
    envd_version, source, start FROM templates;
  INSERT INTO template_tags SELECT template_id, 'default', build_id, updated_at FROM templates;
  ALTER TABLE templates DROP COLUMN build_id;
  ALTER TABLE templates DROP COLUMN cpu_count;
  ALTER TABLE templates DROP COLUMN memory_mb;
  ALTER TABLE templates DROP COLUMN disk_size_mb;
  ALTER TABLE templates DROP COLUMN envd_version;
  ALTER TABLE templates DROP COLUMN source;
  ALTER TABLE templates DROP COLUMN start;
  `,
  `
  ALTER TABLE sandboxes ADD COLUMN boot TEXT;
  ALTER TABLE snapshots ADD COLUMN bytes INTEGER;
  `,
];
