-- The pipeline's runs in state RUNNING. Leans on pipeline_run_open.
SELECT id FROM delivery_pipelinerun WHERE state = 'RUNNING'
