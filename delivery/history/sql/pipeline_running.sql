-- The runs of the pipeline that are under way. Leans on pipeline_run_open.
SELECT id FROM delivery_pipelinerun WHERE state = 'RUNNING'
